package har

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/natscope/natscope/subjects"
)

// ahead is how many entries have their bodies read before their turn comes.
const ahead = 3

// Write writes an archive of requests to w, in the order of their starts. Bodies
// are read one entry at a time, so that memory is bounded by the largest few of
// them. A body that cannot be read is left out, and its entry says why; running
// requests are written as far as they are and marked as incomplete. The error
// wraps ErrNoRequests, the error of w or that of ctx; then the archive is not whole.
func Write(ctx context.Context, w io.Writer, list []Request, o Options) error {
	if len(list) == 0 {
		return ErrNoRequests
	}
	o.Limits = o.Limits.WithDefaults()
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Request) int { return cmp.Compare(a.began(), b.began()) })
	out := bufio.NewWriterSize(w, 64<<10)
	head, err := json.Marshal(creator{Name: "natscope", Version: or(o.Version, "dev")})
	if err != nil {
		return fmt.Errorf("har: %w", err)
	}
	pages, err := json.Marshal(pagesOf(list))
	if err != nil {
		return fmt.Errorf("har: %w", err)
	}
	fmt.Fprintf(out, "{\"log\":{\"version\":\"1.2\",\"creator\":%s,\"pages\":%s,\"entries\":[", head, pages)
	if err := writeEntries(ctx, out, list, o); err != nil {
		return err
	}
	fmt.Fprint(out, "\n]}}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("har: write: %w", err)
	}
	return nil
}

func writeEntries(ctx context.Context, out *bufio.Writer, list []Request, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	read := make(chan bodies, ahead)
	done := make(chan struct{})
	defer func() {
		cancel()
		<-done
	}()
	go func() {
		defer close(done)
		for i := range list {
			select {
			case read <- readBodies(ctx, &list[i], o):
			case <-ctx.Done():
				return
			}
		}
	}()
	room := o.BodyBytes
	if room <= 0 {
		room = MaxBodyBytes
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := range list {
		var b bodies
		select {
		case b = <-read:
		case <-ctx.Done():
			return fmt.Errorf("har: %w", context.Cause(ctx))
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("har: %w", err)
		}
		room -= b.request.fit(room)
		room -= b.response.fit(room)
		separator := ",\n"
		if i == 0 {
			separator = "\n"
		}
		if _, err := out.WriteString(separator); err != nil {
			return fmt.Errorf("har: write: %w", err)
		}
		if err := enc.Encode(entryOf(&list[i], b)); err != nil {
			return fmt.Errorf("har: write: %w", err)
		}
		if o.Progress != nil {
			o.Progress(i + 1)
		}
	}
	return nil
}

// began is when a request began, in milliseconds since the Unix epoch.
func (r *Request) began() float64 { return r.wall(r.Request.Start.T) }

// wall turns a time on the source's clock into milliseconds since the Unix epoch.
func (r *Request) wall(t float64) float64 { return r.Request.Origin + t }

// stamp writes milliseconds since the Unix epoch as ISO 8601.
func stamp(ms float64) string {
	return time.UnixMicro(int64(min(max(ms, 0), maxWall) * 1000)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// maxWall is the end of the year 9999, in milliseconds.
const maxWall = 253402300799999

// pagesOf makes a page for each source, in the order of their first requests.
func pagesOf(list []Request) []page {
	out := []page{}
	known := make(map[subjects.SourceID]bool)
	for i := range list {
		r := &list[i]
		if known[r.Source] {
			continue
		}
		known[r.Source] = true
		out = append(out, page{StartedDateTime: stamp(r.began()), ID: pageID(r.Source), Title: or(r.Name, string(r.Source)), PageTimings: pageTimings{-1, -1}})
	}
	return out
}

func pageID(id subjects.SourceID) string { return "source_" + string(id) }

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
