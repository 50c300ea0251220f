import { z } from "zod";

const name = z.string().min(1).max(200);

const choice = z.strictObject({
  /** The value that is sent to backends. Default: the name of the choice. */
  value: z
    .string()
    .max(8_000)
    .regex(/^[^\r\n\0]*$/, "must be one line")
    .optional(),
  /** Shown to the model. */
  description: z.string().max(500).optional(),
  /** For regions and profiles: the identities that may use it. Default: all. */
  identities: z.array(name).optional(),
});

/**
 * How the active choice is sent with each call, and to which servers. An argument is added only to tools whose input schema has a property of that name.
 */
const ride = z
  .strictObject({ as: z.enum(["header", "meta", "argument"]), name, servers: z.array(name).min(1) })
  .refine(({ as, name: header }) => as !== "header" || /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header), {
    path: ["name"],
    error: "is not a valid header name",
  });

/** Without `rides`, the active choice is visible to scripts but sent to no backend. */
const choices = z.strictObject({ choices: z.record(name, choice), rides: z.array(ride).optional() });

/**
 * The identities, regions and profiles that scripts can act as (configuration key `session`). Scripts set them by name and never see the values that
 * are sent to backends.
 */
export const identityConfigurationSchema = z
  .strictObject({
    identities: choices.optional(),
    regions: choices.optional(),
    profiles: choices.optional(),
    /** Tools that are refused while no identity is active: `server__tool`, or `server__*` for all tools of a server. */
    identityRequired: z.array(name.regex(/__/, "must be server__tool or server__*")).optional(),
  })
  .superRefine(({ identities, regions, profiles }, context) => {
    for (const [kind, { choices: named }] of Object.entries({ ...(regions && { regions }), ...(profiles && { profiles }) })) {
      for (const [one, { identities: owners = [] }] of Object.entries(named)) {
        for (const owner of owners.filter((identity) => !Object.hasOwn(identities?.choices ?? {}, identity))) {
          context.addIssue({
            code: "custom",
            path: [kind, "choices", one, "identities"],
            message: `unknown identity ${JSON.stringify(owner)}`,
          });
        }
      }
    }
  });

export type Ride = z.infer<typeof ride>;
export type StateChoices = z.infer<typeof choices>;
export type IdentityConfiguration = z.infer<typeof identityConfigurationSchema>;
