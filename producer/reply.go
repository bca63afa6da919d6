package producer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The error codes of JetStream that mean something to the chain of expected sequences.
const (
	codeTooLarge      = 10054
	codeWrongSequence = 10071
	codeInFlight      = 10164
)

// verdict is what a reply to a published message means.
type verdict int

const (
	// stored means that the stream has the message, at the sequence that goes with the verdict.
	stored verdict = iota + 1
	// storedBefore means that an earlier copy of the message is in the stream and its acknowledgement was lost.
	storedBefore
	// evicted means that the stream forgot everything of the chain, so that it begins anew.
	evicted
	// rolledBack means that the server lost messages that it had acknowledged.
	rolledBack
	// tooLarge means that the stream will never take the message.
	tooLarge
	// again means that the same message may succeed later.
	again
)

// reply is the answer to a published message.
type reply struct {
	token uint64
	// noResponders means that no stream listens.
	noResponders bool
	data         []byte
}

// errNoStream says that no stream takes the source's records.
var errNoStream = errors.New("no stream takes the records: start a natscope store, or create the streams of the space")

// judge says what a reply means for a message that expected last as the newest
// sequence of its chain. The error is what to tell people, nil with stored and storedBefore.
func judge(r reply, last uint64) (v verdict, seq uint64, err error) {
	if r.noResponders {
		return again, 0, errNoStream
	}
	var a struct {
		Seq   uint64 `json:"seq"`
		Error *struct {
			Code        int    `json:"code"`
			ErrCode     int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(r.data, &a); err != nil {
		return again, 0, fmt.Errorf("unreadable acknowledgement: %w", err)
	}
	if a.Error == nil {
		if a.Seq == 0 {
			return again, 0, errors.New("acknowledgement without a sequence")
		}
		return stored, a.Seq, nil
	}
	err = fmt.Errorf("the stream refused a message: %s (error %d)", cutText(a.Error.Description, 256), a.Error.ErrCode)
	switch a.Error.ErrCode {
	case codeTooLarge:
		return tooLarge, 0, err
	case codeWrongSequence:
		var n uint64
		at := strings.LastIndexByte(a.Error.Description, ' ')
		if _, scanErr := fmt.Sscanf(a.Error.Description[at+1:], "%d", &n); scanErr != nil {
			return again, 0, err
		}
		switch {
		case n > last:
			return storedBefore, n, nil
		case n == 0 && last > 0:
			return evicted, 0, err
		case n < last:
			return rolledBack, n, err
		}
	}
	return again, 0, err
}
