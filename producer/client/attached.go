package client

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Scheme is how the addresses of the scripts begin that natscope puts into
// programs by their inspectors. Whoever shows a program's scripts leaves them out.
const Scheme = "natscope://client/"

// attachedEntry is the module that Attached ends with, attachedCalls what is in
// it though it is only imported by a call.
const attachedEntry = "attached/start.js"

var attachedCalls = []string{"shared/cordis.js"}

// The forms in which our modules import what Node has.
var (
	nodeDefault = regexp.MustCompile(`^import ([\w$]+) from '(node:[\w/]+)';$`)
	nodeNames   = regexp.MustCompile(`^import \{ ([\w$, ]+) \} from '(node:[\w/]+)';$`)
)

// Attached puts the modules of a file system together as one expression, a
// function of require and the options of attached/start.js that begins to observe
// the program in which it is called. It needs no module loader, so an inspector
// can evaluate it in any program. An error wraps ErrModule and names the line.
func Attached(files fs.FS) (string, error) {
	b := &bundler{files: files, part: make(map[string]string), lean: make(map[string][]string), exports: make(map[string][]string), inline: true}
	b.sum = noSum{}
	b.out = Bundle{Sources: make(map[string][]byte)}
	b.rewrite = attachedLines
	if err := b.add(slices.Concat([]string{attachedEntry}, attachedCalls)); err != nil {
		return "", err
	}
	var out bytes.Buffer
	out.WriteString("(function(require,options){'use strict';\n")
	for _, name := range b.order[0].modules {
		lines, err := b.body(name, attachedEntry)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "const %s=(()=>{\n", variable(name))
		for _, line := range lines {
			if strings.TrimSpace(line) != "" {
				out.WriteString(line)
				out.WriteByte('\n')
			}
		}
		out.WriteString("})();\n")
	}
	fmt.Fprintf(&out, "return %s.attach(options);\n})", variable(attachedEntry))
	return out.String(), nil
}

// attachedLines turns what only modules can say into what a function can.
func attachedLines(name string, lines []string) {
	for i, line := range lines {
		line = nodeDefault.ReplaceAllString(line, "const $1 = require('$2');")
		if m := nodeNames.FindStringSubmatch(line); m != nil {
			line = fmt.Sprintf("const { %s } = require('%s');", strings.ReplaceAll(m[1], " as ", ": "), m[2])
		}
		lines[i] = strings.ReplaceAll(line, "import.meta.url", "'"+Scheme+name+"'")
	}
}

// noSum is the sum of files of which nobody asks the version.
type noSum struct{}

func (noSum) Write(p []byte) (int, error) { return len(p), nil }
func (noSum) Sum(b []byte) []byte         { return b }
func (noSum) Reset()                      {}
func (noSum) Size() int                   { return 0 }
func (noSum) BlockSize() int              { return 1 }
