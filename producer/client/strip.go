package client

import (
	"bytes"
	"strings"
)

// Lean returns a module without its comments, for pages that load it: half of
// the bytes are for people who read them. Every line keeps its number and every
// token its text, so that stacks and DevTools show the places of the file.
//
// It understands the JavaScript of this package, not all of the language: a
// slash begins a regular expression where an expression can begin.
func Lean(src []byte) []byte {
	s := stripper{src: src}
	s.code(false)
	return s.out.Bytes()
}

type stripper struct {
	src []byte
	at  int
	out bytes.Buffer
	// last is the last byte of the last token, and word that token if it is a name.
	last byte
	word string
}

// code copies tokens up to the end, or up to the brace that ends an expression in a template.
func (s *stripper) code(hole bool) {
	depth := 0
	for s.at < len(s.src) {
		c := s.src[s.at]
		switch {
		case c == '/' && s.next() == '/':
			s.line()
		case c == '/' && s.next() == '*':
			s.block()
		case c == '\'' || c == '"':
			s.quoted(c)
		case c == '`':
			s.template()
		case c == '/' && s.expressionBegins():
			s.regexp()
		case isName(c):
			s.name()
		default:
			if hole && c == '}' && depth == 0 {
				return
			}
			if c == '{' {
				depth++
			} else if c == '}' {
				depth--
			}
			if c > ' ' {
				s.last, s.word = c, ""
			}
			s.copy(1)
		}
	}
}

func (s *stripper) next() byte {
	if s.at+1 < len(s.src) {
		return s.src[s.at+1]
	}
	return 0
}

func (s *stripper) copy(n int) {
	n = min(n, len(s.src)-s.at)
	s.out.Write(s.src[s.at : s.at+n])
	s.at += n
}

// trim takes back the blanks that stood before a comment at the end of a line.
func (s *stripper) trim() {
	b := s.out.Bytes()
	s.out.Truncate(len(bytes.TrimRight(b, " \t")))
}

func (s *stripper) line() {
	s.trim()
	n := bytes.IndexByte(s.src[s.at:], '\n')
	if n < 0 {
		n = len(s.src) - s.at
	}
	s.at += n
}

// block leaves the line breaks of a comment, or else a blank, so that tokens stay apart.
func (s *stripper) block() {
	end := bytes.Index(s.src[s.at+2:], []byte("*/"))
	if end < 0 {
		s.copy(len(s.src))
		return
	}
	comment := s.src[s.at : s.at+2+end+2]
	if n := bytes.Count(comment, []byte("\n")); n > 0 {
		s.trim()
		s.out.WriteString(strings.Repeat("\n", n))
	} else if b := s.out.Bytes(); len(b) > 0 && b[len(b)-1] > ' ' {
		s.out.WriteByte(' ')
	}
	s.at += len(comment)
	for s.at < len(s.src) && (s.src[s.at] == ' ' || s.src[s.at] == '\t') && s.lineBegins() {
		s.at++
	}
}

func (s *stripper) lineBegins() bool {
	b := s.out.Bytes()
	return len(b) == 0 || b[len(b)-1] == '\n' || b[len(b)-1] == ' '
}

func (s *stripper) quoted(q byte) {
	n := 1
	for s.at+n < len(s.src) && s.src[s.at+n] != q && s.src[s.at+n] != '\n' {
		if s.src[s.at+n] == '\\' {
			n++
		}
		n++
	}
	s.copy(n + 1)
	s.last, s.word = q, ""
}

func (s *stripper) template() {
	s.copy(1)
	for s.at < len(s.src) {
		switch {
		case s.src[s.at] == '`':
			s.copy(1)
			s.last, s.word = '`', ""
			return
		case s.src[s.at] == '\\':
			s.copy(2)
		case s.src[s.at] == '$' && s.next() == '{':
			s.copy(2)
			s.last, s.word = '{', ""
			s.code(true)
			s.copy(1)
		default:
			s.copy(1)
		}
	}
}

func (s *stripper) name() {
	n := 0
	for s.at+n < len(s.src) && isName(s.src[s.at+n]) {
		n++
	}
	word := string(s.src[s.at : s.at+n])
	s.copy(n)
	s.last, s.word = word[n-1], word
}

// expressionBegins reports whether a slash here begins a regular expression.
func (s *stripper) expressionBegins() bool {
	switch s.word {
	case "":
		return !strings.ContainsRune(")]}'\"`", rune(s.last))
	case "return", "typeof", "case", "in", "of", "void", "throw", "else", "await", "yield":
		return true
	}
	return false
}

func (s *stripper) regexp() {
	n := 1
	for set := false; s.at+n < len(s.src) && s.src[s.at+n] != '\n'; n++ {
		switch c := s.src[s.at+n]; {
		case c == '\\':
			n++
		case c == '[':
			set = true
		case c == ']':
			set = false
		case c == '/' && !set:
			s.copy(n + 1)
			s.last, s.word = ')', ""
			return
		}
	}
	s.copy(1)
	s.last, s.word = '/', ""
}

func isName(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
