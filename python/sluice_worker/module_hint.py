"""What to use instead of a module that is not in the snapshot."""

from __future__ import annotations

_NETWORK_NAMES = """
    aioftp aiohttp alpaca_trade_api asyncpg azure binance boto3 botocore ccxt cloudscraper coinbase curl_cffi elasticsearch fastapi
    feedparser flask fredapi gcsfs google googleapiclient grpc gspread httplib2 httpx kafka mechanize mysql openai openbb paho
    pandas_datareader paramiko pika playwright polygon psycopg psycopg2 pycoingecko pycurl pymongo pymysql pyppeteer quandl redis
    requests requests_cache requests_html s3fs scapy scrapy selenium snowflake socks starlette tornado trio tweepy twisted urllib3
    uvicorn web3 websocket websockets yahoo_fin yahooquery yfinance zmq
"""
_NETWORK = frozenset(_NETWORK_NAMES.split())

_DRAW = "matplotlib (plt) and save_figure(alt), or render_chart(spec, data)"
_FRAMES = "pandas (pd)"
_NUMBERS = "numpy (np) and scipy"
_MODELS = "statsmodels (sm), scipy or numpy (np)"

_INSTEAD = {
    **dict.fromkeys(
        ("altair", "bokeh", "dash", "mplfinance", "plotly", "seaborn", "streamlit", "tkinter", "turtle"), _DRAW
    ),
    **dict.fromkeys(
        ("dask", "duckdb", "empyrical", "ffn", "geopandas", "polars", "quantstats", "vectorbt", "xarray"), _FRAMES
    ),
    **dict.fromkeys(("pandas_ta", "ta", "talib"), "pandas (pd): rolling, ewm"),
    **dict.fromkeys(("astropy", "bottleneck", "cvxpy", "networkx", "numba", "numexpr", "sympy", "torch"), _NUMBERS),
    **dict.fromkeys(
        ("arch", "keras", "lifelines", "lightgbm", "linearmodels", "sklearn", "tensorflow", "xgboost"), _MODELS
    ),
    **dict.fromkeys(("pmdarima", "prophet"), "statsmodels.tsa"),
    **dict.fromkeys(("orjson", "simplejson", "ujson", "yaml"), "json"),
    "bs4": "html.parser or re",
    "IPython": "set_result(value) or save_figure(alt)",
    "joblib": "a plain loop",
    "lxml": "xml.etree.ElementTree",
    "pendulum": "pandas (pd) timestamps or datetime",
    "pytz": "zoneinfo",
    "tabulate": "DataFrame.to_string",
    "toml": "tomllib",
    "tqdm": "a loop without a progress bar",
}


def module_hint(module: str) -> str:
    """The sentence that follows the message of a `ModuleNotFoundError`.

    >>> module_hint("polars")
    '. Not in the snapshot, and nothing can be installed: use pandas (pd) instead.'
    """
    if module in _NETWORK:
        return ". There is no network here: Python derives from data that tools fetched, it does not fetch."
    instead = _INSTEAD.get(module)
    if instead is not None:
        return f". Not in the snapshot, and nothing can be installed: use {instead} instead."
    return ". Not in the snapshot, and nothing can be installed: use pandas, numpy, scipy, statsmodels, matplotlib, pyarrow or the standard library."
