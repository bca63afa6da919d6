package embedded

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/natscope/natscope/"

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Doc        string
}

// goList describes all packages of the module.
func goList(t *testing.T) map[string]goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps,Doc", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := make(map[string]goPackage)
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(p.ImportPath, module)] = p
	}
	return all
}

// importRule forbids packages below From to depend on packages below any of Never.
type importRule struct {
	From  string
	Never []string
	Why   string
}

var importRules = []importRule{
	{"subjects", []string{"producer", "store", "cdpgw", "query", "embedded", "examples"}, "the contract knows nobody who uses it"},
	{"producer", []string{"store", "cdpgw", "query", "embedded", "examples"}, "an application links only what it needs to publish"},
	{"store", []string{"producer", "cdpgw", "query", "embedded", "examples"}, "state is shared by its readers and knows none of them"},
	{"cdpgw", []string{"producer", "query", "embedded", "examples"}, "CDP is one projection among others"},
	{"query", []string{"producer", "cdpgw", "embedded", "examples"}, "programs read state without CDP"},
	{"embedded", []string{"cmd"}, "nothing imports a command"},
	{"examples", []string{"store", "cdpgw", "query", "embedded", "cmd"}, "an example is an application"},
}

// under reports whether a package path is root or below it.
func under(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// breaks lists the rules that a set of packages breaks.
func breaks(all map[string]goPackage) []string {
	var out []string
	for path, p := range all {
		for _, dep := range p.Deps {
			d, ours := strings.CutPrefix(dep, module)
			for _, r := range importRules {
				if ours && under(path, r.From) && slices.ContainsFunc(r.Never, func(n string) bool { return under(d, n) }) {
					out = append(out, path+" depends on "+d+": "+r.Why)
				}
			}
			if strings.HasPrefix(dep, "github.com/chromedp/cdproto") && !under(path, "cdpgw") && !under(path, "embedded") && !under(path, "cmd") {
				out = append(out, path+" depends on "+dep+": only cdpgw knows CDP")
			}
			if strings.HasPrefix(dep, "github.com/nats-io/nats-server") && !under(path, "embedded") && !under(path, "cmd") && !strings.HasSuffix(path, "/internal/natstest") {
				out = append(out, path+" depends on "+dep+": only embedded runs a server")
			}
		}
		for _, i := range p.Imports {
			if i == module+"store/replica/replicatest" {
				out = append(out, path+" imports "+i+": it is for tests")
			}
			if strings.HasPrefix(i, "github.com/dop251/goja") && path != "producer/goreal/internal/js" && path != "producer/goreal/internal/repl" {
				out = append(out, path+" imports "+i+": one package knows the JavaScript engine, and one its grammar")
			}
		}
		if strings.HasPrefix(path, "subjects/") {
			for _, i := range p.Imports {
				if strings.Contains(strings.SplitN(i, "/", 2)[0], ".") && !strings.HasPrefix(i, module+"subjects/") {
					out = append(out, path+" imports "+i+": payload packages use the standard library and each other only")
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestImportRules(t *testing.T) {
	all := goList(t)
	for _, want := range []string{"subjects", "producer", "store/replica", "store/command", "cdpgw", "embedded", "cmd/natscope"} {
		if _, ok := all[want]; !ok {
			t.Errorf("go list does not know %s: the rules check nothing there", want)
		}
	}
	for _, b := range breaks(all) {
		t.Error(b)
	}
}

// TestImportRulesCanFail makes sure that the check above sees each kind of breach.
func TestImportRulesCanFail(t *testing.T) {
	bad := map[string]goPackage{
		"subjects/tree":    {Imports: []string{"github.com/nats-io/nats.go"}},
		"producer/httpcap": {Deps: []string{module + "store/replica"}},
		"query":            {Deps: []string{module + "cdpgw"}, Imports: []string{module + "store/replica/replicatest"}},
		"producer/goreal":  {Imports: []string{"github.com/dop251/goja"}},
		"store":            {Deps: []string{"github.com/chromedp/cdproto/dom", "github.com/nats-io/nats-server/v2/server"}},
	}
	if got := breaks(bad); len(got) != 7 {
		t.Errorf("found %d breaches of 7: %q", len(got), got)
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for path, p := range goList(t) {
		if p.Doc == "" {
			t.Errorf("package %s has no doc comment", path)
		}
	}
}
