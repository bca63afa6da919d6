package subjects

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/natscope/natscope/subjects/source"
)

// ErrClaim says that a message on a claim subject is no claim. The text around it says why.
var ErrClaim = errors.New("subjects: malformed claim")

// Claim is what a source asks before it opens: whether another living program has its id.
type Claim struct {
	// Generation is the one that is about to open.
	Generation Generation `json:"generation"`
	// Realm is that of the asking program. Who has the same one is the same
	// program on another way to NATS, and makes room.
	Realm source.RealmID `json:"realm"`
	// Who describes the asking program for people.
	Who string `json:"who,omitempty"`
}

// ClaimAnswer is what the holder of an id answers. No answer means that nobody has the id.
type ClaimAnswer struct {
	// Held says that the id is taken: the asker opens under another one.
	Held bool `json:"held"`
	// Generation is that of the holder.
	Generation Generation `json:"generation,omitempty"`
	// Who describes the holder for people.
	Who string `json:"who,omitempty"`
}

// Bounds of a claim, in bytes.
const (
	maxClaim    = 8 << 10
	maxClaimWho = 512
)

// ParseClaim parses a claim. The error wraps ErrClaim. Unknown fields are
// ignored; Who is valid UTF-8 and cut to about 500 bytes.
func ParseClaim(data []byte) (Claim, error) {
	var c Claim
	if len(data) > maxClaim {
		return Claim{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrClaim, len(data), maxClaim)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return Claim{}, fmt.Errorf("%w: %w", ErrClaim, err)
	}
	if err := checkToken("generation", string(c.Generation)); err != nil {
		return Claim{}, fmt.Errorf("%w: %w", ErrClaim, err)
	}
	c.Who = cutWho(c.Who)
	return c, nil
}

// ParseClaimAnswer parses the answer to a claim. The error wraps ErrClaim, and
// means that nobody who understands claims has the id.
func ParseClaimAnswer(data []byte) (ClaimAnswer, error) {
	var a ClaimAnswer
	if len(data) > maxClaim {
		return ClaimAnswer{}, fmt.Errorf("%w: an answer of %d bytes, the limit is %d", ErrClaim, len(data), maxClaim)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return ClaimAnswer{}, fmt.Errorf("%w: answer: %w", ErrClaim, err)
	}
	a.Who = cutWho(a.Who)
	return a, nil
}

func cutWho(s string) string {
	if len(s) > maxClaimWho {
		s = strings.ToValidUTF8(s[:maxClaimWho], "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
