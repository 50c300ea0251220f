/** One error code: its meaning, and how HTTP, the command and the tools report it. */
interface ErrorEntry {
  readonly meaning: string;
  /** The `error_kind` of the tool error that a model reads. Models never see codes without a kind. */
  readonly kind?: ErrorKind;
  /** Default hint. An error can have a more specific one. */
  readonly hint?: string;
  /** Whether the same call may succeed if it is repeated unchanged. Default: false. */
  readonly retryable?: boolean;
  /** HTTP status. Default: the status of the kind; without a kind, 503 if the exit status is 3, otherwise 500. */
  readonly status?: number;
  /** Exit status of the command. Default: 1. */
  readonly exit?: 2 | 3;
  /** The code that a model reads instead of this one. Default: SANDBOX_UNAVAILABLE if the exit status is 3, otherwise INTERNAL_ERROR. */
  readonly modelCode?: "QUEUE_FULL" | "SANDBOX_LOST" | "INPUT_TOO_LARGE";
}

/** The values of `error_kind` in tool errors, with their meaning. */
export const errorKinds = {
  mcp_input_validation:
    "The arguments violate the tool's schema or the call contract. Nothing was run. Fix what the details name, then call again.",
  precondition_failed: "The arguments are valid, but the call cannot succeed in the current state. Follow the hints first.",
  tool_not_found: "No tool has this name.",
  sandbox_runtime: "The code ran and failed, or it was stopped. Change the code, then call again.",
  upstream_http: "A backend answered with an error or did not answer. A retry helps only if the error is retryable.",
  rate_limited: "Too many calls. Wait for _meta.retry_after_seconds if it is present.",
  auth_error: "The caller is not allowed to do this. A retry does not help.",
  internal_error: "Sluice or a tool failed. The call itself is not the cause. A retry helps only if the error is retryable.",
} as const;

export type ErrorKind = keyof typeof errorKinds;

/** The default HTTP status of each kind. */
const statusOfKind: Readonly<Record<ErrorKind, number>> = {
  mcp_input_validation: 422,
  precondition_failed: 422,
  tool_not_found: 404,
  sandbox_runtime: 422,
  upstream_http: 502,
  rate_limited: 429,
  auth_error: 403,
  internal_error: 500,
};

/**
 * Every code of `SluiceError`, tool errors and HTTP errors. scripts/write-docs.ts generates docs/errors.md from it, and `get_envelope_contract` returns the
 * part that models read. `UPSTREAM_HTTP_STATUS` is a placeholder for one code per status, such as `UPSTREAM_HTTP_404`.
 */
export const errorTable = {
  INPUT_VALIDATION_FAILED: {
    kind: "mcp_input_validation",
    meaning: "The arguments have several different problems. Each detail has its own error_code.",
  },
  SCHEMA_VALIDATION_FAILED: {
    kind: "mcp_input_validation",
    meaning: "The arguments violate the schema in a way that has no more specific code.",
    status: 400,
  },
  SCHEMA_TYPE_MISMATCH: { kind: "mcp_input_validation", meaning: "A value has the wrong type." },
  SCHEMA_REQUIRED: { kind: "mcp_input_validation", meaning: "A required field is missing." },
  SCHEMA_ADDITIONAL_PROPERTIES: { kind: "mcp_input_validation", meaning: "The schema has no field of this name." },
  SCHEMA_ENUM_MISMATCH: { kind: "mcp_input_validation", meaning: "A value is not one of the allowed values." },
  SCHEMA_CONST_MISMATCH: { kind: "mcp_input_validation", meaning: "A value is not the only allowed value." },
  SCHEMA_MAX_ITEMS: { kind: "mcp_input_validation", meaning: "A list has too many items." },
  SCHEMA_MIN_ITEMS: { kind: "mcp_input_validation", meaning: "A list has too few items." },
  SCHEMA_UNIQUE_ITEMS: { kind: "mcp_input_validation", meaning: "A list contains the same item twice." },
  SCHEMA_MAX_LENGTH: { kind: "mcp_input_validation", meaning: "A string is too long." },
  SCHEMA_MIN_LENGTH: { kind: "mcp_input_validation", meaning: "A string is too short." },
  SCHEMA_MAXIMUM: { kind: "mcp_input_validation", meaning: "A number is above the maximum." },
  SCHEMA_MINIMUM: { kind: "mcp_input_validation", meaning: "A number is below the minimum." },
  SCHEMA_MULTIPLE_OF: { kind: "mcp_input_validation", meaning: "A number is not a multiple of the required one." },
  SCHEMA_PATTERN_MISMATCH: { kind: "mcp_input_validation", meaning: "A string does not match the pattern." },
  SCHEMA_FORMAT_INVALID: { kind: "mcp_input_validation", meaning: "A string does not have the required format." },
  SCHEMA_ONE_OF_FAILED: { kind: "mcp_input_validation", meaning: "A value matches none of the alternatives, or more than one." },
  SCHEMA_ANY_OF_FAILED: { kind: "mcp_input_validation", meaning: "A value matches none of the alternatives." },
  ALIAS_REQUIRED: {
    kind: "mcp_input_validation",
    meaning: "The call names no alias. Python works on tool outputs that were already fetched; it cannot fetch data itself.",
  },
  ALIAS_UNKNOWN: { kind: "mcp_input_validation", meaning: "No data has this alias.", status: 404, exit: 2 },
  DATA_NAME_INVALID: { kind: "mcp_input_validation", meaning: "The name cannot be used as an alias." },
  DATA_NAME_TAKEN: { kind: "mcp_input_validation", meaning: "The alias is already in use." },
  DATA_INVALID: { kind: "mcp_input_validation", meaning: "The data to store is empty, not a table, or too large." },
  COLUMN_UNKNOWN: { kind: "mcp_input_validation", meaning: "The table has no column of this name.", status: 400 },
  FILTER_VALUE_INVALID: {
    kind: "mcp_input_validation",
    meaning: "The filter value cannot be compared with the values of its column.",
    status: 400,
  },
  LOCAL_NAME_INVALID: { kind: "mcp_input_validation", meaning: "A local name is not a Python identifier." },
  LOCAL_NAME_RESERVED: {
    kind: "mcp_input_validation",
    meaning: "A local name is already used by Python, a helper, a preloaded name or another alias.",
  },
  CODE_EMPTY: { kind: "mcp_input_validation", meaning: "The code is empty." },
  CODE_TOO_LONG: { kind: "mcp_input_validation", meaning: "The code is longer than allowed.", exit: 2 },
  PYTHON_SYNTAX_ERROR: { kind: "mcp_input_validation", meaning: "The code is not valid Python 3.13." },
  PYTHON_UNPARSABLE: { kind: "mcp_input_validation", meaning: "The code is nested too deeply to be parsed." },
  PYTHON_CHECK_TIMEOUT: { kind: "mcp_input_validation", meaning: "Checking the code took too long.", retryable: true },
  EDIT_TEXT_NOT_FOUND: { kind: "mcp_input_validation", meaning: "The text to replace does not occur in the last cell's code." },
  EDIT_TEXT_AMBIGUOUS: { kind: "mcp_input_validation", meaning: "The text to replace occurs more than once in the last cell's code." },
  CHART_INVALID: { kind: "mcp_input_validation", meaning: "The chart's spec does not match its data." },
  CREDENTIAL_ARGUMENT: { kind: "mcp_input_validation", meaning: "An argument looks like a credential. Scripts must not pass credentials." },
  ACTIVE_IDENTITY_REQUIRED: { kind: "precondition_failed", meaning: "The tool needs an active identity." },
  NO_CELL_TO_EDIT: { kind: "precondition_failed", meaning: "No cell has run in this turn yet." },
  INPUT_TOO_LARGE: { kind: "precondition_failed", meaning: "An input is larger than a sandbox accepts.", exit: 2 },
  DATA_UNREADABLE: { kind: "precondition_failed", meaning: "The data is damaged or does not have the format that its name says." },
  DATA_FILE_GONE: {
    kind: "precondition_failed",
    meaning: "The file behind this alias no longer exists or cannot be read.",
    hint: "Restore the file, or use other data: list_data shows what is available.",
    status: 410,
    exit: 2,
  },
  DATA_FILE_REFUSED: {
    kind: "precondition_failed",
    meaning: "The file behind this alias now points outside the directories given with --data.",
    exit: 2,
  },
  EVIDENCE_FULL: { kind: "precondition_failed", meaning: "The evidence of the conversation has reached its limit.", status: 413 },
  CONVERSATION_FULL: {
    kind: "precondition_failed",
    meaning: "The conversation has reached its limit on disk. What is stored stays.",
    hint: "Start a new conversation, delete turns of this one, or let the operator raise server.conversationBytes.",
    status: 413,
  },
  TOOL_NOT_ALLOWED: { kind: "precondition_failed", meaning: "The call was refused by the tool policy or by the user." },
  CALL_REPEATED: {
    kind: "precondition_failed",
    meaning: "The repeat guard of a turn refused the call: the same tool was called three times with the same arguments.",
    hint: "Use the results of the earlier calls: they are available under their aliases.",
  },
  SANDBOX_UNAVAILABLE: { kind: "precondition_failed", meaning: "This machine cannot provide a sandbox.", status: 503 },
  SESSION_UNKNOWN: { kind: "precondition_failed", meaning: "The session handle is unknown." },
  TOOL_NOT_FOUND: { kind: "tool_not_found", meaning: "No tool has this name." },
  PYTHON_ERROR: { kind: "sandbox_runtime", meaning: "The code raised an exception that it did not catch." },
  PYTHON_TIMEOUT: {
    kind: "sandbox_runtime",
    meaning: "The cell reached its time limit.",
    hint: "Vectorize loops or work on an aggregate. The time limit applies to the cell's own code.",
  },
  PYTHON_OUT_OF_MEMORY: {
    kind: "sandbox_runtime",
    meaning: "The cell ran out of memory.",
    hint: "Make fewer copies, select columns early, or aggregate before joining.",
  },
  PYTHON_OUTPUT_LIMIT: {
    kind: "sandbox_runtime",
    meaning: "The result or the artifacts exceed their limit.",
    hint: "Return an aggregate or fewer artifacts. The full data stays available under its alias.",
  },
  PYTHON_CRASHED: {
    kind: "sandbox_runtime",
    meaning: "The process that ran the cell exited or was killed by a signal.",
    hint: "Do not use os._exit, ctypes or signals, and use less memory at a time.",
  },
  CONTRACT_VIOLATION: {
    kind: "sandbox_runtime",
    meaning: "The artifacts are invalid or differ from expectedArtifacts. Nothing was published.",
    hint: "Emit exactly the artifacts that expectedArtifacts declares, or change the declaration. Nothing of this cell was published.",
  },
  SANDBOX_LOST: {
    kind: "sandbox_runtime",
    meaning: "The sandbox died. The next call gets a new one.",
    hint: "Call again. Sluice opens a new sandbox, and the result says what happened to the variables.",
    retryable: true,
  },
  SANDBOX_MODULE_BLOCKED: { kind: "sandbox_runtime", meaning: "The script imports a module that is not allowed." },
  SANDBOX_RUNTIME_ERROR: { kind: "sandbox_runtime", meaning: "The script failed or uses a feature that the interpreter does not support." },
  SANDBOX_TIMEOUT: { kind: "sandbox_runtime", meaning: "The script reached its time limit." },
  SANDBOX_OUT_OF_MEMORY: { kind: "sandbox_runtime", meaning: "The script ran out of memory." },
  SANDBOX_CRASHED: { kind: "sandbox_runtime", meaning: "The interpreter of the script crashed." },
  SANDBOX_TOOL_CALL_LIMIT: { kind: "sandbox_runtime", meaning: "The script requested more tool calls than allowed." },
  UPSTREAM_HTTP_STATUS: { kind: "upstream_http", meaning: "The backend answered with this HTTP status. 408 and 5xx are retryable." },
  UPSTREAM_HTTP_TIMEOUT: { kind: "upstream_http", meaning: "The backend did not answer in time.", retryable: true },
  UPSTREAM_UNREACHABLE: { kind: "upstream_http", meaning: "The backend could not be reached.", retryable: true },
  UPSTREAM_HTTP_429: { kind: "rate_limited", meaning: "The backend limits the request rate.", retryable: true },
  QUEUE_FULL: { kind: "rate_limited", meaning: "All sandboxes are busy and the queue is full.", retryable: true },
  AUTHENTICATION_ERROR: { kind: "auth_error", meaning: "Credentials are missing or were rejected." },
  AUTH_AUTHENTICATION: { kind: "auth_error", meaning: "The backend did not accept the credentials (401)." },
  AUTH_PERMISSION: { kind: "auth_error", meaning: "The backend denied permission (403)." },
  INTERNAL_ERROR: { kind: "internal_error", meaning: "Sluice itself failed." },
  TOOL_EXECUTION_ERROR: { kind: "internal_error", meaning: "The tool failed without an error message." },
  STORAGE_UNAVAILABLE: { kind: "internal_error", meaning: "A store cannot be reached.", retryable: true, status: 503 },
  // Errors of the library, the command and the server. Exit status 2: the caller made a mistake, and nothing was started.
  WRONG_USAGE: {
    meaning: "The command was called with an unknown flag, argument or value.",
    hint: "Run the command with --help.",
    exit: 2,
  },
  WRONG_LIMIT: { meaning: "A limit is out of range.", hint: "docs/configuration.md lists the defaults.", exit: 2 },
  CONFIGURATION_INVALID: { meaning: "The configuration is not valid JSON, or it has wrong keys or values.", exit: 2 },
  CONFIGURATION_NOT_READ: { meaning: "The configuration file cannot be read.", hint: "Check the path and its permissions.", exit: 2 },
  CONFIGURATION_NOT_TRUSTED: {
    meaning: "Sluice found a configuration file that belongs to another user or that every user can write to.",
    exit: 2,
  },
  NODE_TOO_OLD: { meaning: "This version of Node.js is too old.", exit: 2 },
  FILE_NOT_READ: { meaning: "A file cannot be read.", hint: "Check the path and its permissions.", exit: 2 },
  SCRIPT_NOT_TEXT: { meaning: "The script is not UTF-8 text.", hint: "Save the script as UTF-8.", exit: 2 },
  ARTIFACTS_NOT_WRITTEN: {
    meaning: "An artifact could not be written to the output directory.",
    hint: "Choose another directory with --out.",
  },
  DATA_PATH_MISSING: { meaning: "A path given with --data does not exist or cannot be read.", exit: 2 },
  DATA_PATH_REFUSED: { meaning: "A path given with --data is not a folder or a supported data file.", exit: 2 },
  READER_OPTIONS_INVALID: {
    meaning: "The options for reading a CSV-like file are not valid.",
    hint: "The options are encoding (utf-8, utf-16le, utf-16be, windows-1252), delimiter (, ; | tab none) and decimal (. or ,), for example --data 'sales.csv?delimiter=%3B&decimal=%2C'.",
    status: 422,
    exit: 2,
  },
  DIRECTORY_IN_USE: { meaning: "Another server uses the same data directory.", exit: 2 },
  NOT_LISTENING: { meaning: "The server cannot listen on this address.", exit: 2 },
  ALLOW_LIST_INVALID: {
    meaning: "An entry of tools.allow is not a valid tool name.",
    hint: "An entry is one tool (`server__tool` or `tool`) or all tools of one server (`server__*`).",
    exit: 2,
  },
  LOCAL_TOOL_SCHEMA: { meaning: "The input schema of a local tool cannot be used.", exit: 2 },
  MCP_SERVER_ENTRY_INVALID: { meaning: "An entry of mcpServers cannot be used.", exit: 2 },
  MODEL_MISSING: { meaning: "No model is connected, and the demo cannot answer the question.", status: 409, exit: 2 },
  MODEL_NAME_INVALID: { meaning: "The model name is not valid.", status: 409, exit: 2 },
  MODEL_KEY_MISSING: { meaning: "The model provider needs an API key.", status: 409, exit: 2 },
  MODEL_URL_MISSING: { meaning: "The model provider needs a URL.", status: 409, exit: 2 },
  MODEL_URL_INVALID: { meaning: "The URL of the model provider is not valid.", status: 409, exit: 2 },
  MODEL_ACCESS_DENIED: { meaning: "The model provider did not accept the API key, or does not allow it to use the model.", status: 502 },
  MODEL_NOT_FOUND: { meaning: "The model provider has no model of this name at this address.", status: 502 },
  MODEL_RATE_LIMITED: { meaning: "The model provider accepts no more requests for now.", retryable: true, status: 429 },
  MODEL_UNAVAILABLE: {
    meaning: "The model could not be reached, was overloaded, or did not answer in time.",
    retryable: true,
    status: 503,
  },
  MODEL_REQUEST_REFUSED: { meaning: "The model provider refused the request.", status: 502 },
  MODEL_REPLY_INVALID: { meaning: "The model sent a reply that cannot be read.", status: 502 },
  MODEL_REPLY_INCOMPLETE: { meaning: "The model's reply ended before it was complete.", retryable: true, status: 502 },
  MODEL_FAILED: { meaning: "A call of the model failed in another way.", status: 502 },
  MODEL_SCRIPT_INVALID: {
    meaning: "The file of a scripted model is not a valid script.",
    hint: "docs/models.md describes the format.",
    status: 409,
    exit: 2,
  },
  MODEL_SCRIPT_NOT_READ: {
    meaning: "The file of a scripted model cannot be read.",
    hint: "Check the path after `script:`.",
    status: 409,
    exit: 2,
  },
  // Sandboxes and snapshots. Exit status 3: this machine cannot provide the requested sandbox, and nothing was run.
  NO_SANDBOX: { meaning: "No sandbox driver works on this machine.", exit: 3 },
  SNAPSHOT_MISSING: { meaning: "The snapshot for this version does not exist.", exit: 3 },
  SANDBOX_QUEUE_TIMEOUT: {
    meaning: "All sandboxes were busy for too long.",
    hint: "Try again later, or raise maxSandboxes if the machine has enough memory.",
    retryable: true,
    modelCode: "QUEUE_FULL",
    status: 429,
    exit: 3,
  },
  SANDBOX_NOT_OPENED: {
    meaning: "The driver could not open a sandbox.",
    hint: "Run `sluice doctor` to see what is missing on this machine.",
    exit: 3,
  },
  OPEN_ABORTED: { meaning: "The caller aborted while a sandbox was opened.", hint: "Open it again if it is still needed.", exit: 3 },
  DRIVER_CLOSED: { meaning: "The driver is closed.", hint: "Create a new driver.", exit: 3 },
  BUBBLEWRAP_FAILED: { meaning: "bubblewrap could not start the sandbox.", exit: 3 },
  GVISOR_START: { meaning: "gVisor could not start the sandbox.", exit: 3 },
  MEMORY_IMAGE: { meaning: "The memory image could not be created.", exit: 3 },
  RUNSC_MISSING: { meaning: "gVisor's program runsc is not installed.", exit: 3 },
  RUNSC_REFUSED: {
    meaning: "The runsc given to `sluice prepare` was not installed, because it is not what its hash promises or not a working runsc.",
    hint: "Take the address and the hash from gVisor's release page, and download again.",
  },
  RUNSC_UNREADABLE: {
    meaning: "The runsc given to `sluice prepare` could not be downloaded or read.",
    hint: "Check the address and the network, or download the file yourself and pass its path.",
    retryable: true,
  },
  RUN_DIRECTORY: { meaning: "The directory for running sandboxes cannot be used.", exit: 3 },
  CGROUP_FAILED: { meaning: "A limit could not be set with a cgroup.", exit: 3 },
  SYSTEM_PACKAGES_MISSING: { meaning: "Packages of the operating system are missing.", exit: 3 },
  MONTY_UNAVAILABLE: { meaning: "The interpreter Monty is not available for this machine.", exit: 3 },
  MONTY_ISOLATION_UNAVAILABLE: { meaning: "This machine cannot isolate scripts with namespaces.", exit: 3 },
  MONTY_NOT_STARTED: { meaning: "The process for a script could not be started." },
  SANDBOX_PROTOCOL: {
    meaning: "A sandbox broke the protocol and was killed.",
    hint: "Do not write to the file descriptors of the worker: this is the usual cause.",
    modelCode: "SANDBOX_LOST",
  },
  SANDBOX_START: {
    meaning: "A sandbox exited before it was ready.",
    hint: "Try again. If it happens again, run `sluice doctor`.",
    modelCode: "SANDBOX_LOST",
  },
  CACHE_FULL: { meaning: "The disk of the cache directory is full." },
  CACHE_NOT_WRITABLE: { meaning: "The cache directory is not writable." },
  EXTRA_WHEELS_UNREACHABLE: {
    meaning: "The extra packages of a snapshot cannot be downloaded.",
    hint: "Connect to a package index and try again. Only tests and benches need these packages.",
  },
  PIP_MISSING: { meaning: "The program pip is not installed.", hint: "Install it: apt-get install python3-pip" },
  PROGRAM_FAILED: {
    meaning: "A program that builds the snapshot failed. The message has its last output.",
    hint: "Fix what the output names, then try again.",
  },
  SNAPSHOT_MANIFEST_UNKNOWN: { meaning: "The manifest of a snapshot cannot be read." },
  SNAPSHOT_WHEELS_FAILED: { meaning: "The packages of the snapshot could not be installed." },
  SNAPSHOT_WRONG_PYTHON: {
    meaning: "The new snapshot has the wrong Python version.",
    hint: "Run `sluice snapshot build --fresh` to download Debian again.",
  },
  // Calls of the library that come too late or have unusable arguments.
  SESSION_CLOSED: { meaning: "The cell session is closed.", hint: "Open a new cell session.", exit: 2 },
  TURN_OVER: { meaning: "The turn has ended.", hint: "Create a new turn.", exit: 2 },
  ENGINE_CLOSED: { meaning: "The engine for scripts is closed.", hint: "Create a new engine.", exit: 2 },
  PARSER_CLOSED: { meaning: "The Python parser of a runtime is closed.", hint: "Create a new runtime.", exit: 2 },
  TABLES_CLOSED: { meaning: "The runtime is closing, so tables cannot be queried.", hint: "Create a new runtime.", exit: 2 },
  ENGINE_UNAVAILABLE: {
    meaning: "No engine can run the script.",
    hint: "Set engine to auto or monty, or prepare a sandbox (`sluice doctor` shows what is missing).",
    status: 503,
  },
  PYTHON_PARSER_UNAVAILABLE: { meaning: "The Python parser cannot be started.", status: 503 },
  INPUTS_TOO_LARGE: { meaning: "The inputs together are larger than a sandbox accepts.", modelCode: "INPUT_TOO_LARGE", exit: 2 },
  INPUT_NOT_TAKEN: { meaning: "The sandbox did not accept an input.", modelCode: "INPUT_TOO_LARGE", exit: 2 },
  EVIDENCE_NOT_JSON: { meaning: "A value cannot be written as JSON.", hint: "Return text, bytes, or plain data without cycles.", exit: 2 },
  EVIDENCE_MISSING: { meaning: "Stored evidence no longer exists.", hint: "Fetch the data again.", status: 410 },
  OUTPUT_UNREADABLE: { meaning: "The output of a tool could not be read.", hint: "Request less data from the tool at a time." },
  PREVIEW_BUDGET_TOO_SMALL: { meaning: "The preview budget is too small for any preview.", exit: 2 },
  ARTIFACT_DAMAGED: {
    meaning: "The content of a stored artifact does not match its hash.",
    hint: "Store the same artifact again. Something outside Sluice changed the store.",
  },
  DATA_NOT_READ: { meaning: "The data of an alias could not be read." },
  NO_TABLE: { meaning: "The data of the alias cannot be downloaded in this form.", hint: "Download it in another format.", status: 422 },
  CSV_NOT_MADE: { meaning: "The table could not be written as CSV.", status: 422 },
  PARQUET_NOT_MADE: { meaning: "The table could not be written as Parquet.", status: 422 },
  UPLOAD_TOO_LARGE: { meaning: "The file exceeds the upload limit.", status: 413, exit: 2 },
  UPLOAD_TYPE_UNKNOWN: { meaning: "Files with this extension cannot be uploaded.", status: 415, exit: 2 },
  UPLOAD_NOT_AS_NAMED: { meaning: "The content of the file does not match its extension.", status: 422, exit: 2 },
  HISTORY_UNAVAILABLE: {
    meaning: "The history database cannot be used.",
    hint: "Free disk space on the server, or check which process holds the database file. Then try again.",
    retryable: true,
    status: 503,
  },
  HISTORY_TOO_NEW: { meaning: "The history database was written by a newer version of Sluice.", exit: 2 },
  CHART_APP_NOT_BUILT: { meaning: "The chart app is not built." },
  // Calls to MCP servers.
  MCP_UNREACHABLE: { meaning: "The MCP server could not be reached. Nothing was sent.", retryable: true },
  MCP_CONNECTION_LOST: { meaning: "The connection was lost before the response. The server may have done the work." },
  MCP_TIMEOUT: { meaning: "The MCP server did not answer in time. It was asked to cancel the call." },
  MCP_HTTP_STATUS: { meaning: "The MCP server answered with an HTTP error status." },
  MCP_RPC_ERROR: { meaning: "The MCP server answered with a JSON-RPC error." },
  MCP_INVALID_ANSWER: { meaning: "The response violates the protocol, or asks for input that Sluice cannot give." },
  TOOL_ERROR: { meaning: "The tool reported an error (`isError`). Used in probes only; the model reads the tool's own message." },
  CANCELLED: { meaning: "The caller cancelled the call. Used in probes only." },
  ABORTED: { meaning: "The call was aborted by the caller or by the end of its turn. Used in the record of the turn only." },
  // Requests to the server.
  REQUEST_INVALID: {
    meaning: "The request is invalid. The message says where.",
    hint: "/api/openapi.json describes every request.",
    status: 400,
  },
  UNAUTHORIZED: {
    meaning: "The token or login is missing or not valid.",
    hint: "Programs send `Authorization: Bearer TOKEN`. In a browser, open the one-time link that `sluice serve` printed, or create one with `sluice login-link`.",
    status: 401,
  },
  OPERATORS_ONLY: {
    meaning: "Only operators have access.",
    hint: 'Set "operator": true for a token in auth.tokens of the configuration.',
    status: 403,
  },
  ORIGIN_MISSING: {
    meaning: "A request with a login cookie, or one that logs in, has no Origin header.",
    hint: "Programs should use a bearer token.",
    status: 403,
  },
  ORIGIN_NOT_ALLOWED: { meaning: "The request came from a page of another origin.", hint: "Use the page of this server.", status: 403 },
  NOT_FOUND: { meaning: "This address does not exist.", hint: "/api/openapi.json lists all addresses.", status: 404 },
  TURN_OF_OTHER_SUBJECT: {
    meaning: "The conversation acts for another account than the token of the request.",
    hint: "Ask the question again: a new turn fetches its own data.",
    status: 403,
  },
  APPROVAL_NOT_FOUND: { meaning: "The turn did not ask for this approval.", hint: "GET /api/turns/:id lists them.", status: 404 },
  CELL_NOT_FOUND: { meaning: "The turn has no such cell.", hint: "GET /api/turns/:id lists its cells.", status: 404 },
  CONVERSATION_NOT_FOUND: { meaning: "The conversation does not exist.", hint: "GET /api/conversations lists them.", status: 404 },
  FILE_NOT_FOUND: { meaning: "The file does not exist, or it was removed with its turn.", status: 404 },
  TURN_NOT_FOUND: { meaning: "The turn does not exist.", hint: "GET /api/turns lists them.", status: 404 },
  APPROVAL_OVER: {
    meaning: "The approval was already answered, or its turn has ended.",
    hint: "GET /api/turns/:id shows which.",
    status: 409,
  },
  CONVERSATION_REMOVED: { meaning: "The conversation was removed during use.", hint: "Start a new conversation.", status: 409 },
  TURN_RUNNING: { meaning: "A turn is still running.", status: 409 },
  BODY_TOO_LARGE: { meaning: "The request body is too large.", hint: "Send less, or upload data as a file.", status: 413 },
  CONTENT_TYPE_WRONG: { meaning: "The request body has the wrong content type.", hint: "Send application/json.", status: 415 },
  HOST_NOT_ALLOWED: { meaning: "The server does not accept requests for this host name.", status: 421 },
  CELL_NOT_REPLAYED: { meaning: "The cells before this one could not be run again.", status: 422 },
  IDEMPOTENCY_KEY_REUSED: { meaning: "The Idempotency-Key was already used for another question.", status: 422 },
  TOO_MANY_CALLS: { meaning: "Too many calls are running.", hint: "Wait until one of them has finished.", retryable: true, status: 429 },
  TOO_MANY_TURNS: { meaning: "Too many turns are waiting.", retryable: true, status: 429 },
  SERVER_STOPPING: {
    meaning: "The server is shutting down.",
    hint: "Try again when the server is running again.",
    retryable: true,
    status: 503,
  },
  UPLOAD_REMOVED: { meaning: "The file was removed during the upload.", retryable: true, hint: "Upload it again.", status: 503 },
  SERVER_NOT_RUNNING: {
    meaning: "No server that needs a login runs on the data directory.",
    hint: "Start `sluice serve` first, and run this command as the same user with the same configuration (--config, SLUICE_DATA).",
    exit: 2,
  },
  TENANT_UNKNOWN: { meaning: "The tenant has no token.", hint: "Use a tenant of auth.tokens in the configuration.", exit: 2 },
  TENANTS_SHARE_KERNEL: {
    meaning: "A server with several tenants would run their cells on one kernel.",
    hint: 'Use gVisor (`sluice doctor` shows why it cannot be used), run one server for each tenant, or accept the risk with this line in the configuration: "server": { "allowTenantsToShareKernel": true }',
    exit: 2,
  },
  LOGIN_LINK_USED: {
    meaning: "The one-time link was already used or has expired.",
    hint: "Create a new link: `sluice login-link`, or POST /api/login-links.",
    status: 403,
  },
  METHOD_NOT_ALLOWED: { meaning: "This address does not support the HTTP method.", hint: "Use GET.", status: 405 },
} as const satisfies Readonly<Record<string, ErrorEntry>>;

type Table = typeof errorTable;
type UpstreamCode = `UPSTREAM_HTTP_${number}`;
/** A code that models can see. */
export type ToolErrorCode = { [Code in keyof Table]: Table[Code] extends { kind: ErrorKind } ? Code : never }[keyof Table] | UpstreamCode;
export type ErrorCode = keyof Table | UpstreamCode;

interface CompleteEntry extends Omit<ErrorEntry, "exit"> {
  readonly retryable: boolean;
  readonly status: number;
  readonly exit: 1 | 2 | 3;
}

/** Returns the entry of a code with its defaults filled in. */
export function lookUpError(code: ErrorCode): CompleteEntry {
  const entry: ErrorEntry = Object.hasOwn(errorTable, code) ? errorTable[code as keyof Table] : upstreamEntry(code as UpstreamCode);
  const {
    kind,
    retryable = false,
    exit = 1,
    status = kind === undefined && exit === 3 ? 503 : statusOfKind[kind ?? "internal_error"],
  } = entry;
  return { ...entry, retryable, status, exit };
}

function upstreamEntry(code: UpstreamCode): ErrorEntry {
  const status = Number(code.slice("UPSTREAM_HTTP_".length));
  return { ...errorTable.UPSTREAM_HTTP_STATUS, retryable: status === 408 || status >= 500 };
}

/** The answer of `get_envelope_contract()`, generated from the table. */
export function getEnvelopeContract() {
  const entries = Object.entries(errorTable as Readonly<Record<string, ErrorEntry>>);
  return {
    contract_version: 1,
    keys: ["error_kind", "tool", "summary", "details", "hints", "examples", "error_code", "retryable", "_envelope_version", "_meta"],
    error_kinds: Object.entries(errorKinds).map(([error_kind, meaning]) => ({
      error_kind,
      meaning,
      error_codes: entries
        .filter(([, { kind }]) => kind === error_kind)
        .map(([error_code, entry]) => ({ error_code, meaning: entry.meaning, retryable: entry.retryable ?? false })),
    })),
  } as const;
}
