import { z } from "zod";
import type { Ride, SessionConfiguration, StateChoice, StateChoices } from "./contract.ts";

const name = z.string().min(1).max(200);

const choice: z.ZodType<StateChoice> = z.strictObject({
  value: z
    .string()
    .max(8_000)
    .regex(/^[^\r\n\0]*$/, "must be one line")
    .optional(),
  description: z.string().max(500).optional(),
  identities: z.array(name).optional(),
});

const ride: z.ZodType<Ride> = z
  .strictObject({ as: z.enum(["header", "meta", "argument"]), name, servers: z.array(name).min(1) })
  .refine(({ as, name: header }) => as !== "header" || /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header), {
    path: ["name"],
    error: "is no name of a header",
  });

const choices: z.ZodType<StateChoices> = z.strictObject({ choices: z.record(name, choice), rides: z.array(ride).optional() });

/** How the configuration file says it. */
export const sessionConfigurationSchema: z.ZodType<SessionConfiguration> = z
  .strictObject({
    identities: choices.optional(),
    regions: choices.optional(),
    profiles: choices.optional(),
    identityRequired: z.array(name.regex(/__/, "must be server__tool or server__*")).optional(),
  })
  .superRefine(({ identities, regions, profiles }, context) => {
    for (const [kind, { choices: of }] of Object.entries({ ...(regions && { regions }), ...(profiles && { profiles }) })) {
      for (const [one, { identities: owners = [] }] of Object.entries(of)) {
        for (const owner of owners.filter((identity) => !Object.hasOwn(identities?.choices ?? {}, identity))) {
          context.addIssue({
            code: "custom",
            path: [kind, "choices", one, "identities"],
            message: `there is no identity ${JSON.stringify(owner)}`,
          });
        }
      }
    }
  });
