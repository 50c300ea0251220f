/** What an error code tells a model, and whether the same call may succeed when it is made again unchanged. */
export interface CodeEntry {
  readonly meaning: string;
  readonly retryable: boolean;
}

export interface KindEntry {
  readonly meaning: string;
  readonly codes: Readonly<Record<string, CodeEntry>>;
}

/**
 * Every kind and every code that a model can read, in one place: envelopes are made from it and `get_envelope_contract` prints it.
 * `UPSTREAM_HTTP_STATUS` stands for one code a status: `UPSTREAM_HTTP_404`.
 */
export const envelopeTable = {
  mcp_input_validation: {
    meaning: "The call is not as the tool's schema or contract demands. Nothing was run.",
    codes: {
      INPUT_VALIDATION_FAILED: { meaning: "Several different things are wrong; each detail has its own error_code.", retryable: false },
      SCHEMA_VALIDATION_FAILED: { meaning: "The input breaks the schema in a way that has no code of its own.", retryable: false },
      SCHEMA_TYPE_MISMATCH: { meaning: "A value has another type than the schema says.", retryable: false },
      SCHEMA_REQUIRED: { meaning: "A required field is missing.", retryable: false },
      SCHEMA_ADDITIONAL_PROPERTIES: { meaning: "A field that the schema does not know.", retryable: false },
      SCHEMA_ENUM_MISMATCH: { meaning: "A value that is not among the allowed ones.", retryable: false },
      SCHEMA_CONST_MISMATCH: { meaning: "A value that is not the one allowed.", retryable: false },
      SCHEMA_MAX_ITEMS: { meaning: "Too many items.", retryable: false },
      SCHEMA_MIN_ITEMS: { meaning: "Too few items.", retryable: false },
      SCHEMA_UNIQUE_ITEMS: { meaning: "Items that are not unique.", retryable: false },
      SCHEMA_MAX_LENGTH: { meaning: "A text that is too long.", retryable: false },
      SCHEMA_MIN_LENGTH: { meaning: "A text that is too short.", retryable: false },
      SCHEMA_MAXIMUM: { meaning: "A number above the maximum.", retryable: false },
      SCHEMA_MINIMUM: { meaning: "A number below the minimum.", retryable: false },
      SCHEMA_MULTIPLE_OF: { meaning: "A number that is not a multiple of the one given.", retryable: false },
      SCHEMA_PATTERN_MISMATCH: { meaning: "A text that does not fit the pattern.", retryable: false },
      SCHEMA_FORMAT_INVALID: { meaning: "A text that does not have the format.", retryable: false },
      SCHEMA_ONE_OF_FAILED: { meaning: "The value fits none, or more than one, of the alternatives.", retryable: false },
      SCHEMA_ANY_OF_FAILED: { meaning: "The value fits none of the alternatives.", retryable: false },
      SCHEMA_ALL_OF_FAILED: { meaning: "The value does not fit all of the schemas.", retryable: false },
      ALIAS_REQUIRED: { meaning: "The contract names no alias: Python derives from tool outputs, it does not acquire.", retryable: false },
      ALIAS_UNKNOWN: { meaning: "No tool output has this alias.", retryable: false },
      DATA_NAME_INVALID: { meaning: "A name that cannot be the alias of data.", retryable: false },
      DATA_NAME_TAKEN: { meaning: "There is an alias of this name already.", retryable: false },
      DATA_INVALID: { meaning: "What was to be stored is empty, not a table, or too large.", retryable: false },
      COLUMN_UNKNOWN: { meaning: "The table has no column of this name.", retryable: false },
      FILTER_VALUE_INVALID: { meaning: "A value that cannot be compared with those of its column.", retryable: false },
      LOCAL_NAME_INVALID: { meaning: "A local name that is not a Python identifier.", retryable: false },
      LOCAL_NAME_RESERVED: {
        meaning: "A local name that is taken by Python, a helper, a preloaded name or another alias.",
        retryable: false,
      },
      CODE_EMPTY: { meaning: "There is no code to run.", retryable: false },
      CODE_TOO_LONG: { meaning: "The code is longer than allowed.", retryable: false },
      PYTHON_SYNTAX_ERROR: { meaning: "The code is not Python 3.13.", retryable: false },
      PYTHON_MODULE_MISSING: { meaning: "The code imports what is not in the snapshot.", retryable: false },
      PYTHON_NETWORK_MODULE: { meaning: "The code imports a module for the network: Python derives, it does not fetch.", retryable: false },
      PYTHON_UNPARSABLE: { meaning: "The code is nested too deeply for a parser.", retryable: false },
      PYTHON_CHECK_TIMEOUT: { meaning: "The code could not be checked in time.", retryable: true },
      EDIT_TEXT_NOT_FOUND: { meaning: "The text to replace is not in the last cell's code.", retryable: false },
      EDIT_TEXT_AMBIGUOUS: { meaning: "The text to replace is more than once in the last cell's code.", retryable: false },
      CHART_INVALID: { meaning: "The chart's spec and the data do not fit.", retryable: false },
      CREDENTIAL_ARGUMENT: { meaning: "An argument looks like a credential; those are never passed by a script.", retryable: false },
    },
  },
  precondition_failed: {
    meaning: "The call is well formed and cannot be served in this state. Do what the hints say first.",
    codes: {
      ACTIVE_IDENTITY_REQUIRED: { meaning: "The tool needs an active identity.", retryable: false },
      NO_CELL_TO_EDIT: { meaning: "No cell has been run in this turn.", retryable: false },
      INPUT_TOO_LARGE: { meaning: "An input is larger than the sandbox can take.", retryable: false },
      DATA_UNREADABLE: { meaning: "The data is damaged, or not what its format says.", retryable: false },
      DATA_FILE_GONE: { meaning: "The file of this alias is not there any more, or cannot be read.", retryable: false },
      DATA_FILE_REFUSED: { meaning: "The file of this alias now leads out of what was given.", retryable: false },
      EVIDENCE_FULL: { meaning: "The conversation keeps as much as it may.", retryable: false },
      TOOL_NOT_ALLOWED: { meaning: "The tool policy does not allow this tool.", retryable: false },
      SANDBOX_UNAVAILABLE: { meaning: "No sandbox can be had on this machine.", retryable: false },
      SESSION_UNKNOWN: { meaning: "There is no session with the handle that was passed.", retryable: false },
    },
  },
  tool_not_found: {
    meaning: "There is no tool of this name.",
    codes: { TOOL_NOT_FOUND: { meaning: "There is no tool of this name.", retryable: false } },
  },
  sandbox_runtime: {
    meaning: "The code was run, and failed or was ended.",
    codes: {
      PYTHON_ERROR: { meaning: "An exception that the code did not catch.", retryable: false },
      PYTHON_TIMEOUT: { meaning: "The cell's own time was over.", retryable: false },
      PYTHON_OUT_OF_MEMORY: { meaning: "The cell needed more memory than there is.", retryable: false },
      PYTHON_OUTPUT_LIMIT: { meaning: "The result or the artifacts are over their limit.", retryable: false },
      PYTHON_CRASHED: { meaning: "The process that ran the cell died by a signal or ended itself.", retryable: false },
      CONTRACT_VIOLATION: { meaning: "The artifacts are not as declared, or not valid. Nothing was published.", retryable: false },
      SANDBOX_LOST: { meaning: "The sandbox itself is gone; the next call gets a new one.", retryable: true },
      SANDBOX_MODULE_BLOCKED: { meaning: "The script imports a module that it may not use.", retryable: false },
      SANDBOX_RUNTIME_ERROR: { meaning: "The script failed, or uses what the interpreter does not support.", retryable: false },
      SANDBOX_TIMEOUT: { meaning: "The script's time was over.", retryable: false },
      SANDBOX_OUT_OF_MEMORY: { meaning: "The script needed more memory than there is.", retryable: false },
      SANDBOX_CRASHED: { meaning: "The interpreter that ran the script died.", retryable: false },
      SANDBOX_TOOL_CALL_LIMIT: { meaning: "The script made more tool calls than it may.", retryable: false },
    },
  },
  upstream_http: {
    meaning: "A backend answered with an error, or not at all.",
    codes: {
      UPSTREAM_HTTP_STATUS: { meaning: "The backend's HTTP status; 408 and 5xx are retryable.", retryable: false },
      UPSTREAM_HTTP_TIMEOUT: { meaning: "The backend did not answer in time.", retryable: true },
      UPSTREAM_UNREACHABLE: { meaning: "No connection to the backend.", retryable: true },
    },
  },
  rate_limited: {
    meaning: "Too many calls. Wait for _meta.retry_after_seconds where it is given.",
    codes: {
      UPSTREAM_HTTP_429: { meaning: "The backend limits the rate.", retryable: true },
      QUEUE_FULL: { meaning: "All sandboxes are busy and the queue is full.", retryable: true },
    },
  },
  auth_error: {
    meaning: "The caller may not do this. A retry does not help.",
    codes: {
      AUTHENTICATION_ERROR: { meaning: "Credentials are missing or not accepted.", retryable: false },
      AUTH_AUTHENTICATION: { meaning: "The backend does not know the caller (401).", retryable: false },
      AUTH_PERMISSION: { meaning: "The backend does not allow it (403).", retryable: false },
    },
  },
  internal_error: {
    meaning: "A fault of the runtime or of a tool, not of the call.",
    codes: {
      INTERNAL_ERROR: { meaning: "A fault of the runtime.", retryable: false },
      TOOL_EXECUTION_ERROR: { meaning: "The tool failed without saying how.", retryable: false },
      STORAGE_UNAVAILABLE: { meaning: "A store cannot be reached.", retryable: true },
    },
  },
} as const;

export type EnvelopeKind = keyof typeof envelopeTable;
type TableCode = { [Kind in EnvelopeKind]: keyof (typeof envelopeTable)[Kind]["codes"] }[EnvelopeKind];
export type EnvelopeCode = Exclude<TableCode, "UPSTREAM_HTTP_STATUS"> | `UPSTREAM_HTTP_${number}`;

/** The kind that a code belongs to, and whether a retry helps unless somebody who knows better says otherwise. */
export function lookUpCode(code: EnvelopeCode): { kind: EnvelopeKind; retryable: boolean } {
  for (const [kind, { codes }] of Object.entries(envelopeTable) as [EnvelopeKind, KindEntry][]) {
    const entry = Object.hasOwn(codes, code) ? codes[code] : undefined;
    if (entry) return { kind, retryable: entry.retryable };
  }
  const status = Number(code.slice("UPSTREAM_HTTP_".length));
  return { kind: "upstream_http", retryable: status === 408 || status >= 500 };
}
