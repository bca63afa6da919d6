package subjects

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// MaxToken is the length of the longest token, in bytes.
const MaxToken = 64

// ErrToken says that a string is not a token: tokens are 1 to MaxToken bytes of a-z, 0-9, "_" and "-".
var ErrToken = errors.New("subjects: not a token")

// tokenMark separates the readable prefix of a mapped token from its hash. A
// name that already looks mapped is mapped again, so no two names share a
// token unless their hashes collide.
const tokenMark = "_x"

// tokenHashLen is the length of the hash in a mapped token: 16 characters of base32 are 80 bits.
const tokenHashLen = 16

// tokenPrefix is how many characters of the name stay readable in a mapped token.
const tokenPrefix = 40

var tokenHash = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// IsToken reports whether s can stand as one level of a subject.
func IsToken(s string) bool {
	if s == "" || len(s) > MaxToken {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return true
}

// Token maps any name to a token. A name that is a token, and does not look
// like a mapped one, is returned unchanged. Every other name (capitals, spaces,
// dots, wildcards, non-ASCII, empty, longer than MaxToken) becomes a readable
// prefix followed by a hash of the whole name. The mapping is deterministic and
// different names get different tokens, so "A" and "a" or "a.b" and "a b" stay
// apart. The name itself travels in the descriptor of the source.
func Token(name string) string {
	if IsToken(name) && !looksMapped(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := tokenHash.EncodeToString(sum[:])[:tokenHashLen]
	return readable(name) + tokenMark + hash
}

// readable keeps what it can of a name for the eye: letters in lower case,
// everything else as single dashes.
func readable(name string) string {
	var b strings.Builder
	dash := false
	for i := 0; i < len(name) && b.Len() < tokenPrefix; i++ {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if !isTokenByte(c) || c == '-' {
			dash = b.Len() > 0
			continue
		}
		if dash {
			b.WriteByte('-')
			dash = false
		}
		b.WriteByte(c)
	}
	if b.Len() == 0 {
		return "n"
	}
	return b.String()
}

// looksMapped reports whether s has the form that Token gives to names that are not tokens.
func looksMapped(s string) bool {
	i := len(s) - tokenHashLen
	if i < len(tokenMark)+1 || s[i-len(tokenMark):i] != tokenMark {
		return false
	}
	return strings.Trim(s[i:], "0123456789abcdefghijklmnopqrstuv") == ""
}

func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// checkToken returns an error that wraps ErrToken and names the level when s is not a token.
func checkToken(level, s string) error {
	if IsToken(s) {
		return nil
	}
	return fmt.Errorf("%s %.80q: %w", level, s, ErrToken)
}
