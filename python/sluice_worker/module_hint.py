"""Hints for imports that fail: what to use instead of a missing module, and that there is no network."""

from __future__ import annotations

import sys

_NETWORK_NAMES = """
    _socket _ssl aioftp aiohttp alpaca_trade_api asyncpg azure binance boto3 botocore ccxt cloudscraper coinbase curl_cffi elasticsearch
    fastapi feedparser flask fredapi ftplib gcsfs google googleapiclient grpc gspread http httplib2 httpx imaplib kafka mechanize mysql
    nntplib openai openbb paho pandas_datareader paramiko pika playwright polygon poplib psycopg psycopg2 pycoingecko pycurl pymongo
    pymysql pyppeteer quandl redis requests requests_cache requests_html s3fs scapy scrapy selenium smtplib snowflake socket
    socketserver socks ssl starlette telnetlib tornado trio tweepy twisted urllib urllib3 uvicorn web3 webbrowser websocket websockets
    xmlrpc yahoo_fin yahooquery yfinance zmq
"""
#: Modules that need a network, including those of the standard library.
NETWORK_MODULES = frozenset(_NETWORK_NAMES.split())
#: Appended to the message of an error that one of them raised.
NO_NETWORK = ". The sandbox has no network: compute with data that tools have already fetched."

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
    "asyncore": "asyncio",
    "bs4": "html.parser or re",
    "cgi": "html or urllib.parse",
    "distutils": "shutil, sysconfig or packaging.version",
    "imp": "importlib",
    "IPython": "set_result(value) or save_figure(alt)",
    "joblib": "a plain loop",
    "lxml": "xml.etree.ElementTree",
    "pkg_resources": "importlib.metadata",
    "pendulum": "pandas (pd) timestamps or datetime",
    "pytz": "zoneinfo",
    "tabulate": "DataFrame.to_string",
    "toml": "tomllib",
    "tqdm": "a loop without a progress bar",
}


def module_hint(module: str) -> str:
    """The hint to append to the message of a `ModuleNotFoundError`, by the full name of the module.

    >>> module_hint("polars")
    '. It is not installed and cannot be installed: use pandas (pd) instead.'
    """
    package, _, inner = module.partition(".")
    if package in NETWORK_MODULES:
        return NO_NETWORK
    if inner and package in sys.modules:  # the package is there: another version of it had this module
        return f". The installed version of {package} has no such module."
    instead = _INSTEAD.get(package)
    if instead is not None:
        return f". It is not installed and cannot be installed: use {instead} instead."
    return (
        ". It is not installed and cannot be installed: "
        "use pandas, numpy, scipy, statsmodels, matplotlib, pyarrow or the standard library."
    )
