package subjects

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects/console"
	"github.com/natscope/natscope/subjects/internal/wiretest"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// constants returns the string constants of a package's files whose names begin with a prefix.
func constants(t *testing.T, folder, prefix string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if !strings.HasPrefix(name.Name, prefix) || i >= len(v.Values) {
						continue
					}
					if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
						out[name.Name], _ = strconv.Unquote(lit.Value)
					}
				}
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no constants %s…, so this test would check nothing", folder, prefix)
	}
	return out
}

// section returns the text below a heading up to the next one of its level or above.
func section(page, heading string) string {
	level := heading[:strings.IndexByte(heading, ' ')]
	_, rest, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		return ""
	}
	end := len(rest)
	for l := level; l != "#"; l = l[1:] {
		if i := strings.Index(rest, "\n"+l+" "); i >= 0 {
			end = min(end, i)
		}
	}
	return rest[:end]
}

// undocumented lists what the page does not describe.
func undocumented(t *testing.T, page string) []string {
	t.Helper()
	var out []string
	topics := map[Plane]map[string]any{
		PlaneLife:    {source.TopicOpen: source.Descriptor{}, source.TopicUpdate: source.Update{}, source.TopicNotice: source.Notice{}, source.TopicClose: source.Close{}},
		PlaneTree:    {tree.TopicSnapshot: tree.Snapshot{}, tree.TopicOps: tree.Ops{}, tree.TopicBegin: nil, tree.TopicNodes: tree.Nodes{}, tree.TopicCommit: tree.Commit{}},
		PlaneNet:     {network.TopicStart: network.Start{}, network.TopicRequestBodyEnd: network.BodyEnd{}, network.TopicResponse: network.Response{}, network.TopicDataReceived: network.DataReceived{}, network.TopicMessage: network.Message{}, network.TopicEnd: network.End{}, network.TopicError: network.Error{}},
		PlaneConsole: {console.TopicMessage: console.Message{}, console.TopicException: console.Exception{}},
		PlaneEvent:   nil,
	}
	folders := map[Plane]string{PlaneLife: "source", PlaneTree: "tree", PlaneNet: "network", PlaneConsole: "console"}
	for _, name := range constants(t, ".", "Plane") {
		plane := section(page, "## Plane `"+name+"`")
		if plane == "" {
			out = append(out, "plane "+name)
		}
		folder, ok := folders[Plane(name)]
		if !ok {
			continue
		}
		for _, topic := range constants(t, folder, "Topic") {
			text := section("\n"+plane+"\n", "### Topic `"+topic+"`")
			if text == "" {
				out = append(out, "topic "+topic+" of plane "+name)
				continue
			}
			payload, ok := topics[Plane(name)][topic]
			if !ok {
				out = append(out, "payload of topic "+topic+" in this test")
			}
			if payload == nil {
				continue
			}
			for _, path := range wiretest.Fields(reflect.TypeOf(payload)) {
				if field := path[strings.LastIndexByte(path, '.')+1:]; !strings.Contains(text, "`"+field+"`") {
					out = append(out, "field "+path+" of topic "+topic)
				}
			}
		}
	}
	for _, c := range []struct{ prefix, heading string }{
		{"Header", "### Headers"}, {"Body", "## Bodies"}, {"Control", "## Control requests"},
	} {
		text := section(page, c.heading)
		for _, v := range constants(t, ".", c.prefix) {
			if !strings.Contains(text, "| `"+v+"` |") {
				out = append(out, c.prefix+" "+v)
			}
		}
	}
	for _, path := range wiretest.Fields(reflect.TypeFor[Beat]()) {
		if !strings.Contains(section(page, "## Heartbeats"), "`"+path+"`") {
			out = append(out, "field "+path+" of heartbeats")
		}
	}
	for _, payload := range []reflect.Type{reflect.TypeFor[Claim](), reflect.TypeFor[ClaimAnswer]()} {
		for _, path := range wiretest.Fields(payload) {
			if !strings.Contains(section(page, "## Claims"), "`"+path+"`") {
				out = append(out, "field "+path+" of claims")
			}
		}
	}
	out = append(out, undocumentedCommands(t, section(page, "## Commands"))...)
	for _, op := range constants(t, "tree", "Op") {
		if !strings.Contains(section(page, "### Topic `ops`"), "| `"+op+"` |") {
			out = append(out, "op "+op)
		}
	}
	return out
}

// undocumentedCommands lists what the section about commands does not describe.
func undocumentedCommands(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for _, prefix := range []string{"Method", "Code", "Event"} {
		for name, v := range constants(t, "realm", prefix) {
			if !strings.Contains(text, "| `"+v+"` |") {
				out = append(out, "realm."+name)
			}
		}
	}
	for _, payload := range []any{
		realm.Request{}, realm.Answer{}, realm.Event{}, realm.Audit{}, realm.InspectParams{}, realm.InspectResult{}, realm.EditParams{},
		realm.HighlightParams{}, realm.PickParams{}, realm.LogParams{}, realm.StoreGlobalParams{}, realm.StoreGlobalResult{}, realm.OpenParams{},
		realm.Picked{}, realm.Highlighted{}, realm.Reveal{}, realm.OpenResult{}, realm.CancelParams{}, realm.ResolveArgumentParams{}, realm.ObjectResult{},
		realm.ResolveNodeParams{}, realm.NodeOfParams{}, realm.NodeOfResult{}, realm.InspectedParams{}, realm.EnableSourcesResult{}, realm.ScriptSourceParams{},
		realm.ScriptSourceResult{}, realm.LoadResourceParams{}, realm.LoadResourceResult{},
	} {
		for _, path := range wiretest.Fields(reflect.TypeOf(payload)) {
			if !strings.Contains(text, "`"+path[strings.LastIndexByte(path, '.')+1:]+"`") {
				out = append(out, "field "+path+" of commands")
			}
		}
	}
	if !strings.Contains(text, "`"+realm.RevealTopic+"`") {
		out = append(out, "topic "+realm.RevealTopic)
	}
	return out
}

func TestProtocolIsDescribed(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, missing := range undocumented(t, page) {
		t.Errorf("docs/protocol.md does not describe: %s", missing)
	}
	// The check itself must see what is missing.
	for _, part := range []string{"## Plane `net`", "### Topic `commit`", "| `Natscope-Seq` |", "`snippets`", "| `resnapshot` |", "| `aborted` |", "| `move` |", "`seqs`", "`held`", "`deadlineMs`", "| `busy` |", "| `tree.pick` |", "| `picked` |", "| `session.open` |", "`leaseMs`", "| `no-session` |", "| `Natscope-Chunk` |", "| `Natscope-Who` |"} {
		if !strings.Contains(page, part) {
			t.Fatalf("the page has no %s to take away", part)
		}
		if len(undocumented(t, strings.ReplaceAll(page, part, ""))) == 0 {
			t.Errorf("a page without %s passes", part)
		}
	}
}
