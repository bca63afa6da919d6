package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ErrModule is what a module wraps that Bundle does not understand.
var ErrModule = errors.New("module")

// Bundle is the modules in the form in which a page gets them: few files, since
// each module that a page loads costs its main thread about half a millisecond.
type Bundle struct {
	// Version names the content of all files. It is part of the addresses by which
	// they import each other, which therefore can be kept for ever.
	Version string
	// Files holds what is served under each path: the entries (client.js, plugin.js),
	// the parts, and the source map of each part under its path and ".map".
	Files map[string][]byte
	// Sources holds the modules as they were written, to which the maps lead.
	Sources map[string][]byte
}

// entries are what pages and programs import. They stay modules of their own,
// since their address is what the page's author wrote, with a token in it.
var entries = []string{"client.js", "plugin.js"}

// parts are the files that pages load, in this order: each has the modules that
// its own need and that no part before it has. A part has the path of its first
// module. Modules that are only imported when they are needed, and are not named
// here, are parts of their own.
var parts = [][]string{
	{"browser/start.js"},
	{"shared/live.js", "browser/tools.js"},
	{"shared/realm.js", "shared/sources.js", "browser/inspection.js"},
	{"shared/senttree.js"},
}

// The statements that our modules import and export with; each is one line.
var (
	importLine   = regexp.MustCompile(`^import \{ ([\w$, ]+) \} from '(\.{1,2}/[\w./]+)';$`)
	reexportLine = regexp.MustCompile(`^export (\*|\{ [\w$, ]+ \}) from '(\.{1,2}/[\w./]+)';$`)
	listLine     = regexp.MustCompile(`^export \{ ?([\w$, ]*) ?\};$`)
	exportLine   = regexp.MustCompile(`^export ((?:async )?(?:function\*?|class|const) ([\w$]+))`)
	importCall   = regexp.MustCompile(`\bimport\('(\.{1,2}/[\w./]+)'\)`)
	otherLine    = regexp.MustCompile(`^\s*(?:import|export)\b(?:\s*[\w${*'"]|$)`)
	// Calls of which it cannot be told what they load, or that name it in another way.
	otherCall = regexp.MustCompile("\\bimport\\s*\\((?:\\s*[\"`]?\\.|\\s*$|\\s+'|[\"`])")
)

// NewBundle puts the modules of a file system together. What it makes depends on
// nothing but the files. An error wraps ErrModule and names the line.
func NewBundle(files fs.FS) (*Bundle, error) {
	b := &bundler{files: files, sum: sha256.New(), part: make(map[string]string), lean: make(map[string][]string), exports: make(map[string][]string)}
	b.out = Bundle{Files: make(map[string][]byte), Sources: make(map[string][]byte)}
	for _, roots := range parts {
		if err := b.add(roots); err != nil {
			return nil, err
		}
	}
	// What is imported by a call may import more by calls.
	for i := 0; i < len(b.calls); i++ {
		if b.part[b.calls[i]] == "" {
			if err := b.add(b.calls[i : i+1]); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range entries {
		if err := b.read(name); err != nil {
			return nil, err
		}
	}
	b.out.Version = hex.EncodeToString(b.sum.Sum(nil))[:16]
	for _, p := range b.order {
		if err := b.write(p); err != nil {
			return nil, err
		}
	}
	for _, name := range entries {
		lines, err := b.body(name, name)
		if err != nil {
			return nil, err
		}
		b.out.Files[name] = []byte(strings.Join(lines, "\n"))
	}
	return &b.out, nil
}

type bundler struct {
	files fs.FS
	sum   hash.Hash
	// part is the part that a module is in, and order the parts.
	part  map[string]string
	order []part
	// lean holds the lines of the modules that were read.
	lean  map[string][]string
	calls []string
	// exports holds the names that a module exports, once it was written.
	exports map[string][]string
	// inline says that everything is in one file, so that nothing is loaded by a call.
	inline bool
	// rewrite changes the lines of a module as they are read; nil for not at all.
	rewrite func(name string, lines []string)
	out     Bundle
}

// part is one file and its modules, each behind those that it imports.
type part struct {
	name    string
	modules []string
}

// read reads a module once.
func (b *bundler) read(name string) error {
	if b.lean[name] != nil {
		return nil
	}
	src, err := fs.ReadFile(b.files, name)
	if err != nil {
		return fmt.Errorf("client: %w: %w", ErrModule, err)
	}
	fmt.Fprintf(b.sum, "%s %d\n%s", name, len(src), src)
	b.out.Sources[name] = src
	b.lean[name] = strings.Split(string(Lean(src)), "\n")
	if b.rewrite != nil {
		b.rewrite(name, b.lean[name])
	}
	return nil
}

// add makes a part of modules and of what they import.
func (b *bundler) add(roots []string) error {
	p := part{name: roots[0]}
	for _, r := range roots {
		if err := b.visit(&p, r, nil); err != nil {
			return err
		}
	}
	b.order = append(b.order, p)
	return nil
}

func (b *bundler) visit(p *part, name string, above []string) error {
	if slices.Contains(above, name) {
		return fmt.Errorf("client: %w: %s imports itself by way of %s", ErrModule, name, strings.Join(above, ", "))
	}
	if b.part[name] != "" {
		return nil
	}
	if err := b.read(name); err != nil {
		return err
	}
	above = append(slices.Clip(above), name)
	for _, line := range b.lean[name] {
		for _, re := range []*regexp.Regexp{importLine, reexportLine} {
			if m := re.FindStringSubmatch(line); m != nil {
				if err := b.visit(p, path.Join(path.Dir(name), m[2]), above); err != nil {
					return err
				}
			}
		}
		for _, m := range importCall.FindAllStringSubmatch(line, -1) {
			b.calls = append(b.calls, path.Join(path.Dir(name), m[1]))
		}
	}
	b.part[name] = p.name
	p.modules = append(p.modules, name)
	return nil
}

// body returns the lines of a module without import and export, as they stand in the file at.
func (b *bundler) body(name, at string) ([]string, error) {
	var exports []string
	lines := slices.Clone(b.lean[name])
	for i, line := range lines {
		resolve := func(from string) string { return path.Join(path.Dir(name), from) }
		switch {
		case importLine.MatchString(line):
			m := importLine.FindStringSubmatch(line)
			from := resolve(m[2])
			if lost := b.lost(from, m[1]); lost != "" {
				return nil, fmt.Errorf("client: %w: %s:%d: %s does not export %s in a form that is known", ErrModule, name, i+1, from, lost)
			}
			lines[i] = fmt.Sprintf("const { %s } = %s;", strings.ReplaceAll(m[1], " as ", ": "), variable(from))
			if slices.Contains(entries, at) {
				lines[i] = fmt.Sprintf("import { %s } from '%s'; %s", variable(from), b.address(b.part[from], at), lines[i])
			}
		case slices.Contains(entries, at) && !reexportLine.MatchString(line) && (listLine.MatchString(line) || exportLine.MatchString(line)):
		case slices.Contains(entries, at) && otherLine.MatchString(line):
			return nil, unknownForm(name, i, line)
		case reexportLine.MatchString(line):
			m := reexportLine.FindStringSubmatch(line)
			lines[i] = ""
			if m[1] == "*" {
				exports = append(exports, "..."+variable(resolve(m[2])))
				b.exports[name] = append(b.exports[name], b.exports[resolve(m[2])]...)
				break
			}
			if lost := b.lost(resolve(m[2]), strings.Trim(m[1], "{ }")); lost != "" {
				return nil, fmt.Errorf("client: %w: %s:%d: %s does not export %s in a form that is known", ErrModule, name, i+1, resolve(m[2]), lost)
			}
			lines[i] = fmt.Sprintf("const %s = %s;", m[1], variable(resolve(m[2])))
			exports = append(exports, strings.Trim(m[1], "{ }"))
		case listLine.MatchString(line):
			if m := listLine.FindStringSubmatch(line); strings.TrimSpace(m[1]) != "" {
				exports = append(exports, strings.TrimSpace(m[1]))
			}
			lines[i] = ""
		case exportLine.MatchString(line):
			exports = append(exports, exportLine.FindStringSubmatch(line)[2])
			lines[i] = strings.TrimPrefix(line, "export ")
		case otherLine.MatchString(line):
			return nil, unknownForm(name, i, line)
		}
		if otherCall.MatchString(line) {
			return nil, unknownForm(name, i, line)
		}
		lines[i] = importCall.ReplaceAllStringFunc(lines[i], func(call string) string {
			to := resolve(importCall.FindStringSubmatch(call)[1])
			if b.part[to] == "" {
				return call // For another environment than a page.
			}
			if b.inline {
				return fmt.Sprintf("Promise.resolve(%s)", variable(to))
			}
			return fmt.Sprintf("import('%s').then(m => m.%s)", b.address(b.part[to], at), variable(to))
		})
	}
	for _, list := range exports {
		for n := range strings.SplitSeq(list, ",") {
			b.exports[name] = append(b.exports[name], strings.TrimSpace(n))
		}
	}
	if !slices.Contains(entries, at) {
		lines = append(lines, fmt.Sprintf("return { %s };", strings.Join(exports, ", ")))
	}
	return lines, nil
}

// lost returns the first of the names in an import that the module does not
// export as far as we understand it: a page would find it undefined.
func (b *bundler) lost(from, list string) string {
	for n := range strings.SplitSeq(list, ",") {
		n, _, _ = strings.Cut(strings.TrimSpace(n), " as ")
		if n != "" && !slices.Contains(b.exports[from], n) {
			return n
		}
	}
	return ""
}

func unknownForm(name string, i int, line string) error {
	return fmt.Errorf("client: %w: %s:%d: a form of import or export that is not known: %s", ErrModule, name, i+1, line)
}

// write makes the file of a part, and its source map.
func (b *bundler) write(p part) error {
	var out bytes.Buffer
	m := sourceMap{Version: 3, Sources: []string{}, IgnoreList: []int{}, Names: []string{}}
	emit := func(line string, source, at int) {
		out.WriteString(line)
		out.WriteByte('\n')
		m.line(source, at)
	}
	if p.name == parts[0][0] {
		// Most of what is here runs at the start. Chromium then compiles all of it
		// beside the main thread, rather than each function when it is called first.
		emit("//# allFunctionsCalledOnLoad", -1, 0)
	}
	for _, line := range b.imports(p) {
		emit(line, -1, 0)
	}
	up := strings.Repeat("../", strings.Count(p.name, "/"))
	var names []string
	for i, name := range p.modules {
		m.Sources = append(m.Sources, up+"source/"+name)
		m.IgnoreList = append(m.IgnoreList, i)
		names = append(names, variable(name))
		lines, err := b.body(name, p.name)
		if err != nil {
			return err
		}
		emit(fmt.Sprintf("const %s = (() => {", variable(name)), -1, 0)
		for at, line := range lines {
			if strings.TrimSpace(line) != "" {
				emit(line, i, at)
			}
		}
		emit("})();", -1, 0)
	}
	emit(fmt.Sprintf("export { %s };", strings.Join(names, ", ")), -1, 0)
	fmt.Fprintf(&out, "//# sourceMappingURL=%s.map?v=%s\n", path.Base(p.name), b.out.Version)
	b.out.Files[p.name] = out.Bytes()
	text, err := json.Marshal(m)
	b.out.Files[p.name+".map"] = text
	return err
}

// imports are what a part needs of other parts.
func (b *bundler) imports(p part) []string {
	need := make(map[string][]string)
	for _, name := range p.modules {
		for _, line := range b.lean[name] {
			for _, re := range []*regexp.Regexp{importLine, reexportLine} {
				m := re.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				from := path.Join(path.Dir(name), m[2])
				if of := b.part[from]; of != p.name && !slices.Contains(need[of], variable(from)) {
					need[of] = append(need[of], variable(from))
				}
			}
		}
	}
	var out []string
	for _, other := range b.order {
		if list := need[other.name]; list != nil {
			out = append(out, fmt.Sprintf("import { %s } from '%s';", strings.Join(list, ", "), b.address(other.name, p.name)))
		}
	}
	return out
}

// address is the relative address of a file in another one.
func (b *bundler) address(to, in string) string {
	up := strings.Repeat("../", strings.Count(in, "/"))
	if up == "" {
		up = "./"
	}
	return up + to + "?v=" + b.out.Version
}

// variable is the name that a module has inside of a file.
func variable(module string) string {
	return "$" + strings.NewReplacer("/", "_", ".", "_").Replace(strings.TrimSuffix(module, ".js"))
}
