package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/value"
)

// style is a colour of the terminal, or none.
type style string

// The styles. What they mean is also said in words.
const (
	plainStyle style = ""
	dim        style = "2"
	bold       style = "1"
	red        style = "31"
	green      style = "32"
	yellow     style = "33"
	blue       style = "34"
	magenta    style = "35"
	cyan       style = "36"
)

// paint colours a text.
func (p *printer) paint(s style, text string) string {
	if !p.colors || s == plainStyle || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// harmless keeps what programs wrote from controlling the terminal: control
// characters are shown as escapes. Line breaks stay if lines is set.
func harmless(s string, lines bool) string {
	clean := true
	for _, r := range s {
		if r < ' ' || r >= 0x7f && r <= 0x9f || r == utf8.RuneError || isBidi(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' && lines, r == '\t' && lines:
			b.WriteRune(r)
		case r == '\n', r == '\t', r == '\r':
			b.WriteByte(' ')
		case r < ' ', r >= 0x7f && r <= 0x9f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case isBidi(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isBidi reports whether a character changes the direction of what follows, so
// that a line reads as something else.
func isBidi(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// cell is one cell of a table.
type cell struct {
	text  string
	style style
}

// table prints rows in aligned columns. Texts of numbers are set right.
type table struct {
	p     *printer
	heads []string
	rows  [][]cell
	// wide is the column that is cut where the line is wider than the terminal; -1 for none.
	wide int
}

func (p *printer) table(wide int, heads ...string) *table {
	return &table{p: p, heads: heads, wide: wide}
}

func (t *table) add(cells ...cell) {
	for i := range cells {
		cells[i].text = harmless(cells[i].text, false)
	}
	t.rows = append(t.rows, cells)
}

// print prints the table with its heads.
func (t *table) print() {
	widths := make([]int, len(t.heads))
	numeric := make([]bool, len(t.heads))
	for i, h := range t.heads {
		widths[i], numeric[i] = utf8.RuneCountInString(h), len(t.rows) > 0
	}
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
			numeric[i] = numeric[i] && isNumber(c.text)
		}
	}
	t.fit(widths)
	t.row(widths, numeric, headCells(t.heads))
	for _, row := range t.rows {
		t.row(widths, numeric, row)
	}
}

// fit narrows the wide column to the terminal.
func (t *table) fit(widths []int) {
	if t.wide < 0 || t.p.width == 0 {
		return
	}
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	if over := total - t.p.width; over > 0 {
		widths[t.wide] = max(widths[t.wide]-over, 10)
	}
}

func headCells(heads []string) []cell {
	var out []cell
	for _, h := range heads {
		out = append(out, cell{h, bold})
	}
	return out
}

func (t *table) row(widths []int, numeric []bool, row []cell) {
	var b strings.Builder
	for i, c := range row {
		if i > 0 {
			b.WriteString("  ")
		}
		text := cutTo(c.text, widths[i])
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
		switch {
		case numeric[i]:
			b.WriteString(pad + t.p.paint(c.style, text))
		case i == len(row)-1:
			b.WriteString(t.p.paint(c.style, text))
		default:
			b.WriteString(t.p.paint(c.style, text) + pad)
		}
	}
	t.p.printf("%s\n", strings.TrimRight(b.String(), " "))
}

// isNumber reports whether a text stands right in its column: a number, perhaps with a unit, or nothing.
func isNumber(s string) bool {
	if s == "" || s == "-" {
		return true
	}
	return s[0] >= '0' && s[0] <= '9' && !strings.ContainsAny(s, ":/")
}

// cutTo cuts a text to a number of characters, the last of which is then "…".
func cutTo(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	i := 0
	for at := range s {
		if i == n-1 {
			return s[:at] + "…"
		}
		i++
	}
	return s
}

// clock is a time as people read it: today's without the day.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	t = t.Local()
	if now := time.Now(); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05.000")
	}
	return t.Format("2006-01-02 15:04:05")
}

// bytesText is a number of bytes as people read it.
func bytesText(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1000_000:
		return strconv.FormatFloat(float64(n)/1000, 'f', 1, 64) + " kB"
	}
	return strconv.FormatFloat(float64(n)/1000_000, 'f', 1, 64) + " MB"
}

// span is a duration in milliseconds as people read it.
func span(ms float64) string {
	switch {
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 1000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case ms < 60_000:
		return strconv.FormatFloat(ms/1000, 'f', 2, 64) + " s"
	}
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Second).String()
}

// preview is an encoded value in one line.
func preview(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "(none)"
	}
	v, err := value.Parse(raw)
	if err != nil {
		return string(raw)
	}
	return value.Preview(v)
}

// count is a number, or nothing for 0.
func count[T int | uint64](n T) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(uint64(n), 10)
}
