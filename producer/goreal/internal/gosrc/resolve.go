package gosrc

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// MaxSource is the most bytes of a file that are read.
const MaxSource = 4 << 20

// Finder finds files on this machine by the names that the compiler gave them.
type Finder struct {
	// roots are folders in which the main module may be.
	roots []string
	main  string
}

// NewFinder returns a finder that looks where the program was built, in the
// given folders, in the working directory and above, in the module cache and in GOROOT.
func NewFinder(roots []string) *Finder {
	f := &Finder{roots: roots}
	if wd, err := os.Getwd(); err == nil {
		f.roots = append(f.roots[:len(f.roots):len(f.roots)], wd)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		f.main = info.Main.Path
	}
	return f
}

// Find returns where a file is on this machine; false if it is not.
func (f *Finder) Find(file string) (string, bool) {
	if filepath.IsAbs(file) {
		return file, exists(file)
	}
	for _, c := range f.candidates(file) {
		if exists(c) {
			return c, true
		}
	}
	return file, false
}

// candidates lists where a file of a trimmed name may be.
func (f *Finder) candidates(file string) (out []string) {
	if rest, ok := strings.CutPrefix(file, f.main+"/"); ok && f.main != "" {
		for _, r := range f.roots {
			for d := r; ; d = filepath.Dir(d) {
				if f.isModule(d) {
					out = append(out, filepath.Join(d, rest))
					break
				}
				if d == filepath.Dir(d) {
					break
				}
			}
			out = append(out, filepath.Join(r, rest))
		}
	}
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		path := os.Getenv("GOPATH")
		if path == "" {
			home, _ := os.UserHomeDir()
			path = filepath.Join(home, "go")
		}
		cache = filepath.Join(path, "pkg", "mod")
	}
	//lint:ignore SA1019 a process has no other way to find its sources, and one that was moved finds none
	root := runtime.GOROOT()
	return append(out, filepath.Join(cache, file), filepath.Join(root, "src", file))
}

// isModule reports whether a folder is the main module's.
func (f *Finder) isModule(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "module"); ok {
			return strings.Trim(strings.TrimSpace(rest), `"`) == f.main
		}
	}
	return false
}

// Read returns the text of a file, or a comment that says why it is not there.
func (f *Finder) Read(file string) string {
	path, ok := f.Find(file)
	if !ok {
		return "// The source of " + file + " is not on the machine on which the program runs.\n// Set SourceRoots in the options of its realm to the folder of the module.\n"
	}
	s, err := os.Stat(path)
	if err == nil && s.Size() > MaxSource {
		return "// The source is too large to be shown.\n"
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "// The source cannot be read: " + err.Error() + "\n"
	}
	return string(b)
}
