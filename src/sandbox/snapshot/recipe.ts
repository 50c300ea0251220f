import path from "node:path";
import { fileURLToPath } from "node:url";

/** This package's directory `python/`. */
export const pythonDirectory: string = fileURLToPath(new URL("../../../python/", import.meta.url));

/** The Python packages of every snapshot. */
export const lockFile: string = path.join(pythonDirectory, "requirements.lock");

/** The script that runs inside the root as the last step of building a layer. */
export const finishScript: string = path.join(pythonDirectory, "snapshot", "finish_inside.py");

/** Where packages that do not come from Debian are installed in the root. */
export const packagesPath = "usr/local/lib/python3.13/dist-packages";

/**
 * The content of a snapshot, as data. All of it is part of the layer's key: after any change, the next build creates a new layer.
 * Raise `revision` when a change of the build code changes the result.
 */
export const recipe = {
  revision: 2,
  suite: "trixie",
  python: "3.13",
  maxBytes: 800e6,

  /** Unpacked with their dependencies. No maintainer script runs. */
  debianPackages: [
    "base-files",
    "coreutils",
    "dash",
    "fonts-noto-cjk",
    "fonts-noto-core",
    "fonts-symbola",
    "libc-bin",
    "libgomp1",
    "libstdc++6",
    "python3.13",
    "tzdata",
  ],

  /** Used instead of the wheels when no package index can be reached. Debian has no pyarrow. */
  debianLibraries: [
    "libopenblas0-pthread",
    "python3-matplotlib",
    "python3-numpy",
    "python3-openpyxl",
    "python3-pandas",
    "python3-scipy",
    "python3-statsmodels",
  ],

  /** Prefixes of dependencies that a sandbox must not contain. */
  leftOutPackages: [
    "adduser",
    "apt",
    "binutils",
    "blt",
    "ca-certificates",
    "cpp",
    "debconf",
    "dpkg",
    "fonts-lyx",
    "fonts-noto-mono",
    "gcc-1",
    "g++",
    "libblas3",
    "libjs-",
    "liblapack3",
    "libtcl",
    "libtk",
    "libxss",
    "lsb-base",
    "mailcap",
    "openssl",
    "passwd",
    "perl",
    "python-matplotlib-data-doc",
    "python3-fs",
    "python3-mpmath",
    "python3-pil.imagetk",
    "python3-pip",
    "python3-requests",
    "python3-setuptools",
    "python3-sympy",
    "python3-tk",
    "python3-ufolib2",
    "python3-urllib3",
    "python3-wheel",
    "python3-zopfli",
    "python3.13-tk",
    "readline-common",
    "sysvinit-utils",
    "tar",
    "tk8",
    "ucf",
    "unicode-data",
    "x11-common",
  ],

  /** Globs under the root, removed after unpacking. `**` crosses directories. */
  removedPaths: [
    "boot",
    "etc/{alternatives,bindresvport.blacklist,ethertypes,fonts,issue,issue.net,profile.d,rpc,xattr.conf,cron.*,default,dpkg,init.d,kernel,logcheck,logrotate.d,pam.d,python3.13/*.conf,skel,systemd,update-motd.d}",
    "usr/{games,include,src}",
    "usr/lib/{dpkg,init,mime,systemd,valgrind}",
    "usr/lib/python3.13/{ensurepip,idlelib,lib2to3,turtledemo,pydoc_data}",
    "usr/lib/*/perl*",
    "usr/local/{games,include,man,sbin,src}",
    "usr/share/{applications,base-files,binfmts,bash-completion,bug,common-licenses,debianutils,dict,doc,doc-base,doc-rst,fontconfig,gcc,gdb,icons,info,libgcc-s1,lintian,locale,man,menu,metainfo,perl*,pixmaps,polkit-1,python3/runtime.d,zsh}",
    "usr/share/fonts/opentype/noto/NotoSerifCJK-*",
    "usr/share/fonts/truetype/noto/Noto{Serif,Kufi,Looped,Nastaliq,Rashi,Traditional,Music}*",
    "usr/share/fonts/truetype/noto/NotoSans{Anatolian,Cuneiform,Display,Egyptian,Grantha,Linear,Mono-,SignWriting,Tangut}*",
    "usr/bin/{pydoc*,py3*,pygettext*,f2py*,fonttools,numpy-config,pyftmerge,pyftsubset,ttx,chcon,runcon,chroot,install,stdbuf,pinky,users,who,hostid,nohup,mknod,run-parts,savelog,installkernel,tzselect,localedef,pldd,pdb3*,ischroot,tempfile,which*}",
    "usr/sbin/{invoke-rc.d,service,update-rc.d,add-shell,remove-shell,update-shells,chroot,iconvconfig,installkernel,zic}",
    "var/{cache,lib/dpkg,lib/apt,lib/systemd,log,backups,mail,spool}",
  ],

  /** Globs under the directory of Python packages. */
  removedFromPackages: [
    "bin",
    "share",
    // numpy's testing module imports from its tests.
    "!(numpy)/**/tests",
    "!(numpy)/tests",
    "numpy/**/tests/{data,examples,test_*}",
    "**/*.{a,h,hpp,c,cc,cpp,pxd,pxi,pyx,f,f90}",
    "**/_pyinstaller",
    "*-stubs",
    "*/include",
    "*.dist-info/{RECORD,direct_url.json,sboms,licenses/tools}",
    "matplotlib/mpl-data/{sample_data,images/*.svg,images/*.pdf}",
    "matplotlib/backends/web_backend",
    "numpy/{f2py/src,distutils,_pyinstaller,random/lib,_core/lib}",
    // Remove pyarrow's network modules. libarrow_substrait must stay, because every extension is linked to it.
    "pyarrow/{src,_flight.*,flight.py,_s3fs.*,_gcsfs.*,_azurefs.*,_hdfs.*,_pyarrow_cpp_tests.*}",
    "pyarrow/libarrow_{flight,python_flight,s3}.*",
    // The same file exists under three names. The loader uses the one with the major version.
    "pyarrow/libarrow_python{,_parquet_encryption}.{so,so.*.*}",
  ],

  /** Matplotlib draws each character with the first of these fonts that contains it. */
  fontFamilies: {
    wheels: ["DejaVu Sans", "Noto Sans CJK SC", "Noto Sans Devanagari", "Noto Sans Arabic", "Noto Sans Symbols2", "Symbola"],
    debian: ["DejaVu Sans", "Noto Sans CJK JP", "Noto Sans Devanagari", "Noto Sans Arabic", "Noto Sans Symbols2", "Symbola"],
  },

  /** Modules and programs that must not exist. `verify` searches for them from inside. */
  forbiddenModules: [
    "aiohttp",
    "conda",
    "ensurepip",
    "httpx",
    "pip",
    "pip._vendor.requests",
    "requests",
    "setuptools",
    "urllib3",
    "uv",
    "yfinance",
  ],
  forbiddenPrograms: [
    "apk",
    "apt",
    "apt-get",
    "as",
    "c++",
    "cargo",
    "cc",
    "clang",
    "conda",
    "cpp",
    "curl",
    "dnf",
    "dpkg",
    "dpkg-deb",
    "easy_install",
    "f2py",
    "g++",
    "gcc",
    "gfortran",
    "go",
    "ld",
    "make",
    "nc",
    "npm",
    "perl",
    "pip",
    "pip3",
    "rpm",
    "rustc",
    "snap",
    "tcc",
    "uv",
    "wget",
    "yum",
  ],
} as const;

/** The wheel platform tags that are compatible with the suite's C library, best first. */
export function wheelPlatforms(machine: string): string[] {
  const glibcMinors = [41, 39, 38, 35, 34, 31, 28, 27, 26, 24, 17];
  return [...glibcMinors.map((minor) => `manylinux_2_${minor}_${machine}`), `manylinux2014_${machine}`];
}
