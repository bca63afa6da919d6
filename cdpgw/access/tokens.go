package access

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

// ErrTokens says that a file of tokens cannot be used; the text names the line.
var ErrTokens = errors.New("access: bad file of tokens")

// The bounds of a file of tokens.
const (
	maxTokenFile = 1 << 20
	maxTokens    = 1000
	// maxToken is the longest token that is looked at.
	maxToken = 256
)

// hashed is how a token is kept: whoever reads the file cannot use it.
type hashed [sha256.Size]byte

// entry is one line of a file of tokens.
type entry struct {
	hash  hashed
	grant Grant
}

// NewToken makes a token of 130 random bits, and the line for a file of tokens
// that gives its holder the grant. Only the line need be kept.
func NewToken(g Grant) (token, line string, err error) {
	if err := g.check(); err != nil {
		return "", "", err
	}
	token = strings.ToLower(rand.Text())
	h := sha256.Sum256([]byte(token))
	line = "sha256:" + hex.EncodeToString(h[:]) + " name=" + g.Name + " role=" + string(g.Role)
	if len(g.Spaces) > 0 {
		line += " spaces=" + strings.Join(g.Spaces, ",")
	}
	if len(g.Sources) > 0 {
		line += " sources=" + strings.Join(g.Sources, ",")
	}
	return token, line, nil
}

// check returns why a grant cannot be a line. The error wraps ErrTokens.
func (g Grant) check() error {
	switch {
	case g.Name == "" || len(g.Name) > 64 || strings.ContainsFunc(g.Name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '=' }):
		return fmt.Errorf("%w: name %.80q must have 1 to 64 characters and no spaces", ErrTokens, g.Name)
	case g.Role != RoleView && g.Role != RoleDebug:
		return fmt.Errorf("%w: role %.80q is unknown; use view or debug", ErrTokens, g.Role)
	}
	for _, p := range append(append([]string(nil), g.Spaces...), g.Sources...) {
		if _, err := path.Match(p, ""); err != nil || p == "" || strings.ContainsAny(p, ", \t") {
			return fmt.Errorf("%w: %.80q is not a pattern; use *, ? and [a-z]", ErrTokens, p)
		}
	}
	return nil
}

// parseTokens parses a file of tokens: one a line, as NewToken writes them,
// empty lines and those that begin with # aside. The error wraps ErrTokens.
func parseTokens(data []byte) ([]entry, error) {
	if len(data) > maxTokenFile {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTokens, len(data), maxTokenFile)
	}
	var out []entry
	names := make(map[string]bool)
	sc := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		e, err := parseToken(line)
		if err == nil && names[e.grant.Name] {
			err = fmt.Errorf("%w: the name %q is there twice", ErrTokens, e.grant.Name)
		}
		if err == nil && len(out) >= maxTokens {
			err = fmt.Errorf("%w: more than %d tokens", ErrTokens, maxTokens)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		names[e.grant.Name] = true
		out = append(out, e)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTokens, err)
	}
	return out, nil
}

func parseToken(line string) (entry, error) {
	fields := strings.Fields(line)
	digest, ok := strings.CutPrefix(fields[0], "sha256:")
	sum, err := hex.DecodeString(digest)
	if !ok || err != nil || len(sum) != sha256.Size {
		return entry{}, fmt.Errorf("%w: a line begins with sha256: and 64 hexadecimal digits; make one with natscope token", ErrTokens)
	}
	e := entry{hash: hashed(sum)}
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "name":
			e.grant.Name = value
		case "role":
			e.grant.Role = Role(value)
		case "spaces":
			e.grant.Spaces = strings.Split(value, ",")
		case "sources":
			e.grant.Sources = strings.Split(value, ",")
		default:
			// A misspelt restriction must not be a grant of everything.
			return entry{}, fmt.Errorf("%w: %.80q is unknown; use name, role, spaces and sources", ErrTokens, key)
		}
	}
	return e, e.grant.check()
}

// AddLine adds a line of NewToken to a file that only its owner reads; the file
// is made if it is missing. A line that would spoil the file is refused, since
// then nobody could get in: the error wraps ErrTokens or is that of the file.
func AddLine(file, line string) error {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		data = append(data, '\n')
	}
	before := len(data)
	data = append(append(data, line...), '\n')
	if _, err := parseTokens(data); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if before == 0 {
		return os.WriteFile(file, data, 0o600)
	}
	// Nobody may read half a file: the whole appears at once.
	next := file + ".new"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}

// Tokens are the tokens of a file, which is read again when it changes. It is
// safe for concurrent use and starts no goroutine.
type Tokens struct {
	file string

	mu      sync.Mutex // guards everything below
	entries []entry
	// looked is when the file was looked at, stamp what it was then.
	looked time.Time
	stamp  os.FileInfo
	// broken is why the file cannot be used now; then nobody is let in.
	broken error
}

// lookEvery is the time between two looks at the file.
const lookEvery = time.Second

// OpenTokens reads a file of tokens. The error wraps ErrTokens or is that of the file.
func OpenTokens(file string) (*Tokens, error) {
	t := &Tokens{file: file}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look(time.Now())
	return t, t.broken
}

// look reads the file if it changed. The caller holds t.mu. A file that is
// broken or gone lets nobody in: to withdraw tokens must always work.
func (t *Tokens) look(now time.Time) {
	if !t.looked.IsZero() && now.Sub(t.looked) < lookEvery {
		return
	}
	t.looked = now
	stamp, err := os.Stat(t.file)
	if err == nil && t.broken == nil && t.stamp != nil && stamp.ModTime().Equal(t.stamp.ModTime()) && stamp.Size() == t.stamp.Size() && os.SameFile(stamp, t.stamp) {
		return
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(t.file)
	}
	if err == nil {
		t.entries, err = parseTokens(data)
	}
	t.stamp, t.broken = stamp, err
	if err != nil {
		t.entries = nil
		t.broken = fmt.Errorf("file of tokens %s: %w", t.file, err)
	}
}

// Grant returns what a token allows, and false for one that is unknown. It takes
// the same time for every token of a length.
func (t *Tokens) Grant(token string) (Grant, bool) {
	if token == "" || len(token) > maxToken {
		return Grant{}, false
	}
	h := sha256.Sum256([]byte(token))
	return t.byHash(h)
}

func (t *Tokens) byHash(h hashed) (Grant, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look(time.Now())
	var found Grant
	ok := 0
	for _, e := range t.entries {
		if subtle.ConstantTimeCompare(h[:], e.hash[:]) == 1 {
			found, ok = e.grant, 1
		}
	}
	return found, ok == 1
}

// Err returns why the file cannot be used now, nil if it can.
func (t *Tokens) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look(time.Now())
	return t.broken
}

// holds returns the function that says whether a token still means a grant.
func (t *Tokens) holds(token string, g Grant) func() bool {
	h := hashed(sha256.Sum256([]byte(token)))
	return func() bool {
		now, ok := t.byHash(h)
		return ok && now.equal(g)
	}
}
