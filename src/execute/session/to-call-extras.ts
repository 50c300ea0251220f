import { isRecord } from "../../errors/is-record.ts";
import type { ActiveNames, CalledTool, CallExtras, Ride, SessionConfiguration, StateChoices } from "./contract.ts";

/** What rides with a call of this tool, by the configuration. */
export function toCallExtras(configuration: SessionConfiguration, active: ActiveNames, tool: CalledTool): CallExtras {
  const parts = { header: {}, meta: {}, argument: {} } as Record<Ride["as"], Record<string, string>>;
  const add = (kind: StateChoices | undefined, name: string | null): void => {
    if (kind === undefined || name === null) return;
    const value = kind.choices[name]?.value ?? name;
    for (const ride of kind.rides ?? []) if (rides(ride, tool)) parts[ride.as][ride.name] = value;
  };
  add(configuration.identities, active.identity);
  add(configuration.regions, active.region);
  add(configuration.profiles, active.profile);
  return {
    ...(isEmpty(parts.header) ? {} : { headers: parts.header }),
    ...(isEmpty(parts.meta) ? {} : { meta: parts.meta }),
    ...(isEmpty(parts.argument) ? {} : { extraArguments: parts.argument }),
  };
}

function rides({ as, name, servers }: Ride, { server, inputSchema }: CalledTool): boolean {
  if (!servers.includes(server)) return false;
  const { properties } = inputSchema;
  return as !== "argument" || (isRecord(properties) && Object.hasOwn(properties, name));
}

function isEmpty(record: Readonly<Record<string, string>>): boolean {
  return Object.keys(record).length === 0;
}
