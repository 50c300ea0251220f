import { z } from "zod";

const name = z.string().min(1).max(200);

const choice = z.strictObject({
  /** What rides; the choice's own name when it is left out. */
  value: z
    .string()
    .max(8_000)
    .regex(/^[^\r\n\0]*$/, "must be one line")
    .optional(),
  /** For the model. */
  description: z.string().max(500).optional(),
  /** Of regions and profiles: the identities that may choose it; all when it is left out. */
  identities: z.array(name).optional(),
});

/** How the active choice rides with each call. An argument is added only to tools whose schema has a property of that name, and nothing rides to a server
 * that is not in `servers`. */
const ride = z
  .strictObject({ as: z.enum(["header", "meta", "argument"]), name, servers: z.array(name).min(1) })
  .refine(({ as, name: header }) => as !== "header" || /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header), {
    path: ["name"],
    error: "is no name of a header",
  });

/** Without `rides`, the active one is only shown to scripts. */
const choices = z.strictObject({ choices: z.record(name, choice), rides: z.array(ride).optional() });

/**
 * Who a script acts for: an identity, a region, a profile. A script chooses them by name; what rides to a backend for a name is in the configuration,
 * and a script never sees it. State belongs to one session of one bearer token, and to nothing else.
 */
export const identityConfigurationSchema = z
  .strictObject({
    identities: choices.optional(),
    regions: choices.optional(),
    profiles: choices.optional(),
    /** Tools that are refused while no identity is active: `server__tool`, or `server__*` for all of a server. */
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

export type StateChoice = z.infer<typeof choice>;
export type Ride = z.infer<typeof ride>;
export type StateChoices = z.infer<typeof choices>;
export type IdentityConfiguration = z.infer<typeof identityConfigurationSchema>;
