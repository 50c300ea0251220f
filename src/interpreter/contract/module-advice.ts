/** Modules, and submodules, that exist to reach other machines. */
const networkModules: ReadonlySet<string> = new Set(
  [
    "_socket _ssl aioftp aiohttp alpaca_trade_api asyncpg azure binance boto3 botocore ccxt cfscrape cloudscraper coinbase curl_cffi",
    "elasticsearch fastapi feedparser flask fredapi ftplib gcsfs google googleapiclient grpc gspread http.client http.cookiejar http.server httplib2 httpx",
    "imaplib kafka mechanize mysql nntplib openai openbb paho pandas_datareader paramiko pika playwright polygon poplib psycopg psycopg2 pyarrow.flight",
    "pycoingecko pycurl pymongo pymysql pyppeteer quandl redis requests requests_cache requests_html s3fs scapy scrapy selenium smtplib snowflake socket",
    "socketserver socks ssl starlette telnetlib tornado trio twisted tweepy urllib.error urllib.request urllib.robotparser urllib3 uvicorn web3 webbrowser",
    "websocket websockets wsgiref xmlrpc yahoo_fin yahooquery yfinance zmq",
  ].flatMap((line) => line.split(" ")),
);

/** What does the work of a module that is not there. */
const instead: Readonly<Record<string, string>> = {
  altair: "render_chart or matplotlib (plt)",
  arch: "statsmodels (sm)",
  astropy: "numpy and scipy",
  bokeh: "render_chart or matplotlib (plt)",
  bottleneck: "numpy (np) and pandas (pd)",
  bs4: "html.parser or re",
  cgi: "urllib.parse and html",
  cvxpy: "scipy.optimize",
  dash: "render_chart",
  dask: "pandas (pd)",
  distutils: "packaging",
  duckdb: "pandas (pd) or sqlite3",
  empyrical: "pandas (pd) and numpy (np)",
  ffn: "pandas (pd)",
  geopandas: "pandas (pd) and matplotlib (plt)",
  imp: "importlib",
  ipywidgets: "set_result(value)",
  IPython: "set_result(value) or save_figure(alt)",
  joblib: "plain loops: a sandbox has one core's worth of time",
  keras: "statsmodels (sm) or numpy (np)",
  lifelines: "statsmodels.duration",
  lightgbm: "statsmodels (sm)",
  linearmodels: "statsmodels (sm)",
  lxml: "xml.etree.ElementTree",
  mplfinance: "render_chart with a candlestick spec, or matplotlib (plt)",
  networkx: "scipy.sparse.csgraph",
  numba: "numpy (np), vectorised",
  numexpr: "numpy (np)",
  orjson: "json",
  pandas_ta: "pandas (pd): rolling, ewm",
  pendulum: "pandas (pd) timestamps or datetime",
  pip: "the packages that are there: none can be installed",
  plotly: "render_chart or matplotlib (plt)",
  pmdarima: "statsmodels.tsa",
  polars: "pandas (pd)",
  prophet: "statsmodels.tsa",
  pytz: "zoneinfo",
  quantstats: "pandas (pd) and numpy (np)",
  seaborn: "matplotlib (plt)",
  setuptools: "the packages that are there: none can be installed",
  simplejson: "json",
  six: "plain Python 3",
  sklearn: "statsmodels (sm), scipy or numpy (np)",
  streamlit: "render_chart",
  sympy: "scipy or numpy (np)",
  ta: "pandas (pd): rolling, ewm",
  tabulate: "DataFrame.to_string",
  talib: "pandas (pd): rolling, ewm",
  tensorflow: "statsmodels (sm) or numpy (np)",
  tkinter: "save_figure(alt)",
  toml: "tomllib",
  torch: "numpy (np) or scipy",
  tqdm: "nothing: nobody sees a progress bar here",
  turtle: "matplotlib (plt)",
  ujson: "json",
  vectorbt: "pandas (pd) and numpy (np)",
  xarray: "pandas (pd) or numpy (np)",
  xgboost: "statsmodels (sm)",
  yaml: "json",
};

/** The module, or the part of it, that is for the network; null when there is none. */
export function networkModuleOf(module: string, names: readonly string[]): string | null {
  const parts = module.split(".");
  const prefixes = parts.map((_, index) => parts.slice(0, index + 1).join("."));
  return [...prefixes, ...names.map((name) => `${module}.${name}`)].find((name) => networkModules.has(name)) ?? null;
}

export function insteadOf(module: string): string | null {
  const top = module.split(".")[0] ?? "";
  return Object.hasOwn(instead, top) ? (instead[top] ?? null) : null;
}
