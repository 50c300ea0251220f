import { standardLibrary } from "./python-standard-library.ts";

/** Distributions whose modules have other names than themselves. */
const modulesOfDistribution: Readonly<Record<string, readonly string[]>> = {
  beautifulsoup4: ["bs4"],
  fonttools: ["fontTools"],
  matplotlib: ["matplotlib", "mpl_toolkits", "pylab"],
  pillow: ["PIL"],
  "python-dateutil": ["dateutil"],
  pyyaml: ["yaml"],
  "scikit-learn": ["sklearn"],
};

/** Ours: the helpers' own package, and the namespace of the cells. */
const ownModules = ["sluice", "__main__"];

/** Every top-level module that can be imported in a sandbox, from the packages of the snapshot's manifest (name to version). */
export function snapshotModules(packages: Readonly<Record<string, string>>): Set<string> {
  const installed = Object.keys(packages).flatMap((name) => {
    const distribution = name.toLowerCase().replaceAll(/[-_.]+/g, "-");
    return modulesOfDistribution[distribution] ?? [distribution.replaceAll("-", "_")];
  });
  return new Set([...standardLibrary, ...ownModules, ...installed]);
}
