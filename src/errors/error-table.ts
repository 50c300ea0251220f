/** One error code: what it means and how each side that tells it answers. */
interface ErrorEntry {
  readonly meaning: string;
  /** The kind of the v1 error object that a model reads; codes without one are never told to a model. */
  readonly kind?: ErrorKind;
  /** Told where the thrower has no better one. */
  readonly hint?: string;
  /** Whether the same call may succeed when it is made again unchanged. False when it is left out. */
  readonly retryable?: boolean;
  /** Of HTTP; that of its kind when it is left out. Without a kind 503 where the exit status is 3, else 500. */
  readonly status?: number;
  /** Of the command; 1 when it is left out. */
  readonly exit?: 2 | 3;
  /** The code that a model reads in its place. SANDBOX_UNAVAILABLE when it is left out and the exit status is 3, else INTERNAL_ERROR. */
  readonly modelCode?: "QUEUE_FULL" | "SANDBOX_LOST" | "INPUT_TOO_LARGE";
}

/** The kinds of v1 error objects. */
export const errorKinds = {
  mcp_input_validation: "The call is not as the tool's schema or contract demands. Nothing was run.",
  precondition_failed: "The call is well formed and cannot be served in this state. Do what the hints say first.",
  tool_not_found: "There is no tool of this name.",
  sandbox_runtime: "The code was run, and failed or was ended.",
  upstream_http: "A backend answered with an error, or not at all.",
  rate_limited: "Too many calls. Wait for _meta.retry_after_seconds where it is given.",
  auth_error: "The caller may not do this. A retry does not help.",
  internal_error: "A fault of the runtime or of a tool, not of the call.",
} as const;

export type ErrorKind = keyof typeof errorKinds;

/** The HTTP status of a kind. */
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
 * Every code of `SluiceError`, of v1 error objects and of HTTP failures. docs/errors.md is made from it (scripts/write-docs.ts), and
 * `get_envelope_contract` prints the part that models read. `UPSTREAM_HTTP_STATUS` stands for one code a status: `UPSTREAM_HTTP_404`.
 */
export const errorTable = {
  INPUT_VALIDATION_FAILED: {
    kind: "mcp_input_validation",
    meaning: "Several different things are wrong; each detail has its own error_code.",
  },
  SCHEMA_VALIDATION_FAILED: {
    kind: "mcp_input_validation",
    meaning: "The input breaks the schema in a way that has no code of its own.",
    status: 400,
  },
  SCHEMA_TYPE_MISMATCH: { kind: "mcp_input_validation", meaning: "A value has another type than the schema says." },
  SCHEMA_REQUIRED: { kind: "mcp_input_validation", meaning: "A required field is missing." },
  SCHEMA_ADDITIONAL_PROPERTIES: { kind: "mcp_input_validation", meaning: "A field that the schema does not know." },
  SCHEMA_ENUM_MISMATCH: { kind: "mcp_input_validation", meaning: "A value that is not among the allowed ones." },
  SCHEMA_CONST_MISMATCH: { kind: "mcp_input_validation", meaning: "A value that is not the one allowed." },
  SCHEMA_MAX_ITEMS: { kind: "mcp_input_validation", meaning: "Too many items." },
  SCHEMA_MIN_ITEMS: { kind: "mcp_input_validation", meaning: "Too few items." },
  SCHEMA_UNIQUE_ITEMS: { kind: "mcp_input_validation", meaning: "Items that are not unique." },
  SCHEMA_MAX_LENGTH: { kind: "mcp_input_validation", meaning: "A text that is too long." },
  SCHEMA_MIN_LENGTH: { kind: "mcp_input_validation", meaning: "A text that is too short." },
  SCHEMA_MAXIMUM: { kind: "mcp_input_validation", meaning: "A number above the maximum." },
  SCHEMA_MINIMUM: { kind: "mcp_input_validation", meaning: "A number below the minimum." },
  SCHEMA_MULTIPLE_OF: { kind: "mcp_input_validation", meaning: "A number that is not a multiple of the one given." },
  SCHEMA_PATTERN_MISMATCH: { kind: "mcp_input_validation", meaning: "A text that does not fit the pattern." },
  SCHEMA_FORMAT_INVALID: { kind: "mcp_input_validation", meaning: "A text that does not have the format." },
  SCHEMA_ONE_OF_FAILED: { kind: "mcp_input_validation", meaning: "The value fits none, or more than one, of the alternatives." },
  SCHEMA_ANY_OF_FAILED: { kind: "mcp_input_validation", meaning: "The value fits none of the alternatives." },
  ALIAS_REQUIRED: {
    kind: "mcp_input_validation",
    meaning: "The contract names no alias: Python derives from tool outputs, it does not acquire.",
  },
  ALIAS_UNKNOWN: { kind: "mcp_input_validation", meaning: "No tool output has this alias.", status: 404, exit: 2 },
  DATA_NAME_INVALID: { kind: "mcp_input_validation", meaning: "A name that cannot be the alias of data." },
  DATA_NAME_TAKEN: { kind: "mcp_input_validation", meaning: "There is an alias of this name already." },
  DATA_INVALID: { kind: "mcp_input_validation", meaning: "What was to be stored is empty, not a table, or too large." },
  COLUMN_UNKNOWN: { kind: "mcp_input_validation", meaning: "The table has no column of this name.", status: 400 },
  FILTER_VALUE_INVALID: { kind: "mcp_input_validation", meaning: "A value that cannot be compared with those of its column.", status: 400 },
  LOCAL_NAME_INVALID: { kind: "mcp_input_validation", meaning: "A local name that is not a Python identifier." },
  LOCAL_NAME_RESERVED: {
    kind: "mcp_input_validation",
    meaning: "A local name that is taken by Python, a helper, a preloaded name or another alias.",
  },
  CODE_EMPTY: { kind: "mcp_input_validation", meaning: "There is no code to run." },
  CODE_TOO_LONG: { kind: "mcp_input_validation", meaning: "The code is longer than allowed.", exit: 2 },
  PYTHON_SYNTAX_ERROR: { kind: "mcp_input_validation", meaning: "The code is not Python 3.13." },
  PYTHON_UNPARSABLE: { kind: "mcp_input_validation", meaning: "The code is nested too deeply for a parser." },
  PYTHON_CHECK_TIMEOUT: { kind: "mcp_input_validation", meaning: "The code could not be checked in time.", retryable: true },
  EDIT_TEXT_NOT_FOUND: { kind: "mcp_input_validation", meaning: "The text to replace is not in the last cell's code." },
  EDIT_TEXT_AMBIGUOUS: { kind: "mcp_input_validation", meaning: "The text to replace is more than once in the last cell's code." },
  CHART_INVALID: { kind: "mcp_input_validation", meaning: "The chart's spec and the data do not fit." },
  CREDENTIAL_ARGUMENT: {
    kind: "mcp_input_validation",
    meaning: "An argument looks like a credential; those are never passed by a script.",
  },
  ACTIVE_IDENTITY_REQUIRED: { kind: "precondition_failed", meaning: "The tool needs an active identity." },
  NO_CELL_TO_EDIT: { kind: "precondition_failed", meaning: "No cell has been run in this turn." },
  INPUT_TOO_LARGE: { kind: "precondition_failed", meaning: "An input is larger than the sandbox can take.", exit: 2 },
  DATA_UNREADABLE: { kind: "precondition_failed", meaning: "The data is damaged, or not what its format says." },
  DATA_FILE_GONE: {
    kind: "precondition_failed",
    meaning: "The file of this alias is not there any more, or cannot be read.",
    hint: "Put it back, or work with the other data: list_data says what there is.",
    status: 410,
    exit: 2,
  },
  DATA_FILE_REFUSED: { kind: "precondition_failed", meaning: "The file of this alias now leads out of what was given.", exit: 2 },
  EVIDENCE_FULL: { kind: "precondition_failed", meaning: "The conversation keeps as much as it may.", status: 413 },
  TOOL_NOT_ALLOWED: { kind: "precondition_failed", meaning: "The tool policy does not allow this tool." },
  SANDBOX_UNAVAILABLE: { kind: "precondition_failed", meaning: "No sandbox can be had on this machine.", status: 503 },
  SESSION_UNKNOWN: { kind: "precondition_failed", meaning: "There is no session with the handle that was passed." },
  TOOL_NOT_FOUND: { kind: "tool_not_found", meaning: "There is no tool of this name." },
  PYTHON_ERROR: { kind: "sandbox_runtime", meaning: "An exception that the code did not catch." },
  PYTHON_TIMEOUT: {
    kind: "sandbox_runtime",
    meaning: "The cell's own time was over.",
    hint: "Vectorise loops, or work on an aggregate; the time limit is the cell's own.",
  },
  PYTHON_OUT_OF_MEMORY: {
    kind: "sandbox_runtime",
    meaning: "The cell needed more memory than there is.",
    hint: "Keep fewer copies, select columns early, or aggregate before joining.",
  },
  PYTHON_OUTPUT_LIMIT: {
    kind: "sandbox_runtime",
    meaning: "The result or the artifacts are over their limit.",
    hint: "Give out an aggregate or fewer artifacts; the full data stays available under its alias.",
  },
  PYTHON_CRASHED: {
    kind: "sandbox_runtime",
    meaning: "The process that ran the cell died by a signal or ended itself.",
    hint: "The process died: leave out os._exit, ctypes and signals, and use less memory at once.",
  },
  CONTRACT_VIOLATION: {
    kind: "sandbox_runtime",
    meaning: "The artifacts are not as declared, or not valid. Nothing was published.",
    hint: "Emit exactly what expectedArtifacts declares, or declare what is emitted. Nothing of this cell was published.",
  },
  SANDBOX_LOST: {
    kind: "sandbox_runtime",
    meaning: "The sandbox itself is gone; the next call gets a new one.",
    hint: "Call again: a new sandbox is opened, and the answer says what became of the variables.",
    retryable: true,
  },
  SANDBOX_MODULE_BLOCKED: { kind: "sandbox_runtime", meaning: "The script imports a module that it may not use." },
  SANDBOX_RUNTIME_ERROR: { kind: "sandbox_runtime", meaning: "The script failed, or uses what the interpreter does not support." },
  SANDBOX_TIMEOUT: { kind: "sandbox_runtime", meaning: "The script's time was over." },
  SANDBOX_OUT_OF_MEMORY: { kind: "sandbox_runtime", meaning: "The script needed more memory than there is." },
  SANDBOX_CRASHED: { kind: "sandbox_runtime", meaning: "The interpreter that ran the script died." },
  SANDBOX_TOOL_CALL_LIMIT: { kind: "sandbox_runtime", meaning: "The script made more tool calls than it may." },
  UPSTREAM_HTTP_STATUS: { kind: "upstream_http", meaning: "The backend's HTTP status; 408 and 5xx are retryable." },
  UPSTREAM_HTTP_TIMEOUT: { kind: "upstream_http", meaning: "The backend did not answer in time.", retryable: true },
  UPSTREAM_UNREACHABLE: { kind: "upstream_http", meaning: "No connection to the backend.", retryable: true },
  UPSTREAM_HTTP_429: { kind: "rate_limited", meaning: "The backend limits the rate.", retryable: true },
  QUEUE_FULL: { kind: "rate_limited", meaning: "All sandboxes are busy and the queue is full.", retryable: true },
  AUTHENTICATION_ERROR: { kind: "auth_error", meaning: "Credentials are missing or not accepted." },
  AUTH_AUTHENTICATION: { kind: "auth_error", meaning: "The backend does not know the caller (401)." },
  AUTH_PERMISSION: { kind: "auth_error", meaning: "The backend does not allow it (403)." },
  INTERNAL_ERROR: { kind: "internal_error", meaning: "A fault of the runtime." },
  TOOL_EXECUTION_ERROR: { kind: "internal_error", meaning: "The tool failed without saying how." },
  STORAGE_UNAVAILABLE: { kind: "internal_error", meaning: "A store cannot be reached.", retryable: true, status: 503 },
  // Thrown by the library, printed by the command, answered by the server. Exit status 2: the caller asked for something that cannot be; nothing was started.
  WRONG_USAGE: { meaning: "A flag, an argument or a value that the command does not take.", exit: 2 },
  WRONG_LIMIT: { meaning: "A limit that no driver can hold.", hint: "docs/configuration.md has the defaults.", exit: 2 },
  CONFIGURATION_INVALID: { meaning: "The configuration is not JSON, or has wrong keys or values.", exit: 2 },
  CONFIGURATION_NOT_READ: { meaning: "The configuration file cannot be read.", exit: 2 },
  CONFIGURATION_NOT_TRUSTED: { meaning: "A configuration that was come upon belongs to someone else, or anyone may write to it.", exit: 2 },
  NODE_TOO_OLD: { meaning: "This version of Node.js is too old.", exit: 2 },
  FILE_NOT_READ: { meaning: "A file that was given cannot be read.", exit: 2 },
  SCRIPT_NOT_TEXT: { meaning: "The script is not UTF-8 text.", exit: 2 },
  ARTIFACTS_NOT_WRITTEN: { meaning: "An artifact could not be written to the directory.", hint: "Give another directory with --out." },
  DATA_PATH_MISSING: { meaning: "A path of --data that is not there or cannot be read.", exit: 2 },
  DATA_PATH_REFUSED: { meaning: "A path of --data that is not taken.", exit: 2 },
  DIRECTORY_IN_USE: { meaning: "Another server uses the same data directory.", exit: 2 },
  NOT_LISTENING: { meaning: "The address cannot be listened on.", exit: 2 },
  ALLOW_LIST_INVALID: {
    meaning: "An entry of tools.allow that names no tool.",
    hint: "An entry is a tool (`server__tool`, or `tool`) or all tools of one server (`server__*`).",
    exit: 2,
  },
  LOCAL_TOOL_SCHEMA: { meaning: "A local tool's input schema cannot be used.", exit: 2 },
  MCP_SERVER_ENTRY_INVALID: { meaning: "An entry of mcpServers that cannot be used.", exit: 2 },
  MODEL_MISSING: { meaning: "No model is configured.", status: 409, exit: 2 },
  MODEL_NAME_INVALID: { meaning: "A name of a model that is none.", status: 409, exit: 2 },
  MODEL_KEY_MISSING: { meaning: "The provider of the model needs a key.", status: 409, exit: 2 },
  MODEL_URL_MISSING: { meaning: "The provider of the model needs an address.", status: 409, exit: 2 },
  MODEL_URL_INVALID: { meaning: "The address of the provider is none.", status: 409, exit: 2 },
  MODEL_SCRIPT_INVALID: { meaning: "The script of a scripted model is not one.", status: 409, exit: 2 },
  MODEL_SCRIPT_NOT_READ: { meaning: "The script of a scripted model cannot be read.", status: 409, exit: 2 },
  // Sandboxes and snapshots. Exit status 3: no sandbox can be had on this machine as asked; nothing was run.
  NO_SANDBOX: { meaning: "No driver can be used here.", exit: 3 },
  SNAPSHOT_MISSING: { meaning: "There is no snapshot for this version.", exit: 3 },
  SANDBOX_QUEUE_TIMEOUT: {
    meaning: "All sandboxes were busy for too long.",
    hint: "Try again later, or raise maxSandboxes if the machine has the memory.",
    retryable: true,
    modelCode: "QUEUE_FULL",
    status: 429,
    exit: 3,
  },
  SANDBOX_NOT_OPENED: {
    meaning: "The driver could not open a sandbox.",
    hint: "Run `sluice doctor` to see what this machine lacks.",
    exit: 3,
  },
  OPEN_ABORTED: { meaning: "Opening the sandbox was aborted.", exit: 3 },
  DRIVER_CLOSED: { meaning: "The driver is closed.", hint: "Create a new driver.", exit: 3 },
  BUBBLEWRAP_FAILED: { meaning: "bubblewrap could not start the sandbox.", exit: 3 },
  GVISOR_START: { meaning: "gVisor could not start the sandbox.", exit: 3 },
  MEMORY_IMAGE: { meaning: "The memory image could not be made.", exit: 3 },
  RUNSC_MISSING: { meaning: "The program runsc of gVisor is not there.", exit: 3 },
  RUN_DIRECTORY: { meaning: "The directory for running sandboxes cannot be used.", exit: 3 },
  CGROUP_FAILED: { meaning: "A limit could not be set with a cgroup.", exit: 3 },
  SYSTEM_PACKAGES_MISSING: { meaning: "Packages of the operating system are missing.", exit: 3 },
  MONTY_UNAVAILABLE: { meaning: "The interpreter Monty is not installed for this machine.", exit: 3 },
  MONTY_ISOLATION_UNAVAILABLE: { meaning: "Scripts cannot be isolated with namespaces here.", exit: 3 },
  MONTY_NOT_STARTED: { meaning: "The process for a script could not be started." },
  SANDBOX_PROTOCOL: {
    meaning: "A sandbox broke the protocol and was ended.",
    hint: "The sandbox was ended. Code that writes to the worker's own descriptors causes this.",
    modelCode: "SANDBOX_LOST",
  },
  SANDBOX_START: { meaning: "A sandbox ended before it was ready.", modelCode: "SANDBOX_LOST" },
  CACHE_FULL: { meaning: "There is no space left in the cache directory." },
  CACHE_NOT_WRITABLE: { meaning: "The cache directory cannot be written to." },
  EXTRA_WHEELS_UNREACHABLE: {
    meaning: "The extra packages of a snapshot cannot be fetched.",
    hint: "The tests need a package index; the snapshot itself does not.",
  },
  PIP_MISSING: { meaning: "The program pip is not there.", hint: "Install it: apt-get install python3-pip" },
  PROGRAM_FAILED: { meaning: "A program that builds the snapshot failed." },
  SNAPSHOT_MANIFEST_UNKNOWN: { meaning: "The manifest of a snapshot cannot be read." },
  SNAPSHOT_WHEELS_FAILED: { meaning: "The packages of the snapshot could not be installed." },
  SNAPSHOT_WRONG_PYTHON: { meaning: "The snapshot has another Python than it should have." },
  // Calls of the library that come too late, or with something that cannot be used.
  SESSION_CLOSED: { meaning: "The cell session is closed.", exit: 2 },
  TURN_OVER: { meaning: "The turn is over.", exit: 2 },
  ENGINE_CLOSED: { meaning: "The engine for scripts is closed.", hint: "Create a new one.", exit: 2 },
  PARSER_CLOSED: { meaning: "The parser for Python is closed.", exit: 2 },
  TABLES_CLOSED: { meaning: "The runtime is closing: tables cannot be asked any more.", exit: 2 },
  ENGINE_UNAVAILABLE: {
    meaning: "No engine can run the script.",
    hint: "Set engine to auto or monty, or prepare a sandbox (sluice doctor says what is missing).",
    status: 503,
  },
  PYTHON_PARSER_UNAVAILABLE: { meaning: "The parser for Python cannot be started.", status: 503 },
  INPUTS_TOO_LARGE: { meaning: "The inputs together are larger than the sandbox can take.", modelCode: "INPUT_TOO_LARGE", exit: 2 },
  INPUT_NOT_TAKEN: { meaning: "The sandbox did not take an input.", modelCode: "INPUT_TOO_LARGE", exit: 2 },
  EVIDENCE_NOT_JSON: { meaning: "A value that has no JSON form.", hint: "Return plain data without cycles, text, or bytes.", exit: 2 },
  EVIDENCE_MISSING: { meaning: "Kept evidence is not there any more.", hint: "Fetch the data again.", status: 410 },
  OUTPUT_UNREADABLE: { meaning: "The output of a tool could not be read.", hint: "Ask the tool for less at a time." },
  PREVIEW_BUDGET_TOO_SMALL: { meaning: "No preview fits into so few bytes.", exit: 2 },
  ARTIFACT_DAMAGED: {
    meaning: "A stored artifact is not what its hash says.",
    hint: "The store was changed from outside. Keeping the same artifact again mends it.",
  },
  DATA_NOT_READ: { meaning: "The data of an alias could not be read." },
  NO_TABLE: { meaning: "The alias has no rows.", status: 422 },
  CSV_NOT_MADE: { meaning: "The table could not be written as CSV.", status: 422 },
  PARQUET_NOT_MADE: { meaning: "The table could not be written as Parquet.", status: 422 },
  UPLOAD_TOO_LARGE: { meaning: "The file is larger than an upload may be.", status: 413, exit: 2 },
  UPLOAD_TYPE_UNKNOWN: { meaning: "The file has no ending that can become a table.", status: 415, exit: 2 },
  UPLOAD_NOT_AS_NAMED: { meaning: "The file is not what its ending says.", status: 422, exit: 2 },
  HISTORY_UNAVAILABLE: {
    meaning: "The history cannot be used.",
    hint: "Free space on the server, or look what holds its file; then try again.",
    retryable: true,
    status: 503,
  },
  HISTORY_TOO_NEW: { meaning: "The history was written by a newer version.", exit: 2 },
  CHART_APP_NOT_BUILT: { meaning: "The chart app is not built." },
  // Calls to MCP servers.
  MCP_UNREACHABLE: { meaning: "No connection could be made. Nothing was sent.", retryable: true },
  MCP_CONNECTION_LOST: { meaning: "The connection ended before the answer. The server may have done the work." },
  MCP_TIMEOUT: { meaning: "No answer in time. The server was told to stop." },
  MCP_HTTP_STATUS: { meaning: "An HTTP status instead of an answer." },
  MCP_RPC_ERROR: { meaning: "A JSON-RPC error instead of an answer." },
  MCP_INVALID_ANSWER: { meaning: "An answer that is none: not the protocol, or it asks for input that nobody can give." },
  TOOL_ERROR: { meaning: "An answer that says `isError`. Only probes tell it; a model reads what the tool said." },
  CANCELLED: { meaning: "The caller gave up the call. Only probes tell it." },
  ABORTED: { meaning: "A call was ended before it was over, with its turn or by the caller. The record of the turn tells it." },
  // Requests to the server.
  REQUEST_INVALID: { meaning: "The request is not as it should be; details say where.", status: 400 },
  UNAUTHORIZED: {
    meaning: "The token or login is missing or not accepted.",
    hint: "Programs send `Authorization: Bearer TOKEN`; a browser opens the one-time link that `sluice serve` printed.",
    status: 401,
  },
  OPERATORS_ONLY: {
    meaning: "Only an operator may see this.",
    hint: 'Set "operator": true for a token in auth.tokens of the configuration.',
    status: 403,
  },
  ORIGIN_MISSING: { meaning: "A request with a cookie came without an Origin header.", hint: "Programs use a bearer token.", status: 403 },
  ORIGIN_NOT_ALLOWED: { meaning: "The request came from a page of another origin.", status: 403 },
  NOT_FOUND: { meaning: "There is no such page or address.", hint: "/api/openapi.json lists what there is.", status: 404 },
  APPROVAL_NOT_FOUND: { meaning: "The turn has not asked for this approval.", status: 404 },
  CELL_NOT_FOUND: { meaning: "The turn has no such cell.", status: 404 },
  CONVERSATION_NOT_FOUND: { meaning: "There is no such conversation.", status: 404 },
  FILE_NOT_FOUND: { meaning: "There is no such file, or it was removed with its turn.", status: 404 },
  TURN_NOT_FOUND: { meaning: "There is no such turn.", status: 404 },
  APPROVAL_OVER: { meaning: "The approval was answered already, or its turn is over.", status: 409 },
  CONVERSATION_REMOVED: { meaning: "The conversation was removed meanwhile.", status: 409 },
  TURN_RUNNING: { meaning: "A turn still runs.", status: 409 },
  BODY_TOO_LARGE: { meaning: "The body is larger than it may be.", status: 413 },
  CONTENT_TYPE_WRONG: { meaning: "The body has another content type than it should have.", status: 415 },
  HOST_NOT_ALLOWED: { meaning: "The server may not be reached by this name.", status: 421 },
  CELL_NOT_REPLAYED: { meaning: "The cells before this one could not be run again.", status: 422 },
  IDEMPOTENCY_KEY_REUSED: { meaning: "The Idempotency-Key was used for another question.", status: 422 },
  TOO_MANY_CALLS: { meaning: "Too many calls run at once.", hint: "Wait for one of them.", retryable: true, status: 429 },
  TOO_MANY_TURNS: { meaning: "Too many turns wait already.", retryable: true, status: 429 },
  SERVER_STOPPING: { meaning: "The server is stopping.", hint: "Try again when it is back.", retryable: true, status: 503 },
  UPLOAD_REMOVED: { meaning: "The file was removed while it was taken.", retryable: true, hint: "Send it again.", status: 503 },
  LOGIN_LINK_USED: { meaning: "The one-time link was used, or is too old.", hint: "Make another: POST /api/login-links.", status: 403 },
  METHOD_NOT_ALLOWED: { meaning: "The address does not take this method.", status: 405 },
} as const satisfies Readonly<Record<string, ErrorEntry>>;

type Table = typeof errorTable;
type UpstreamCode = `UPSTREAM_HTTP_${number}`;
/** A code that a model can read. */
export type ToolErrorCode = { [Code in keyof Table]: Table[Code] extends { kind: ErrorKind } ? Code : never }[keyof Table] | UpstreamCode;
export type ErrorCode = keyof Table | UpstreamCode;

interface WholeEntry extends Omit<ErrorEntry, "exit"> {
  readonly retryable: boolean;
  readonly status: number;
  readonly exit: 1 | 2 | 3;
}

/** The entry of a code, with what it leaves out. */
export function lookUpError(code: ErrorCode): WholeEntry {
  const entry: ErrorEntry = Object.hasOwn(errorTable, code) ? errorTable[code as keyof Table] : ofUpstream(code as UpstreamCode);
  const {
    kind,
    retryable = false,
    exit = 1,
    status = kind === undefined && exit === 3 ? 503 : statusOfKind[kind ?? "internal_error"],
  } = entry;
  return { ...entry, retryable, status, exit };
}

function ofUpstream(code: UpstreamCode): ErrorEntry {
  const status = Number(code.slice("UPSTREAM_HTTP_".length));
  return { ...errorTable.UPSTREAM_HTTP_STATUS, retryable: status === 408 || status >= 500 };
}

/** What `get_envelope_contract()` answers: the table itself, so that it says what the code does. */
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
