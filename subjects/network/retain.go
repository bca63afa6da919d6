package network

// Keep bounds what a State keeps; a field of zero or less bounds nothing.
type Keep struct {
	// Requests is how many requests are kept.
	Requests int
	// Bytes is how much of their addresses, headers, stacks and messages is kept.
	Bytes int64
}

// weight is about what a request without any text takes, in bytes.
const weight = 1024

// runningShare says which part of the kept requests may be running ones that are
// older than all others: a connection that lives for days stays in sight, and
// requests that nobody ends do not push out everything else.
const runningShare = 4

// bytes is what a request counts.
func (r *Request) bytes() int64 { return int64(r.fixed + r.messages) }

// weigh counts everything but messages. It follows from the request's content
// alone, so that all readers evict the same.
func (r *Request) weigh() int {
	v := &r.Start.Value
	n := weight + len(r.Generation) + len(v.ID) + len(v.Method) + len(v.URL) + len(v.DocumentURL) + len(v.Trace) + len(v.Route) + len(v.Client) + weighHeaders(v.Headers)
	for i := range v.Stack {
		n += len(v.Stack[i].Function) + len(v.Stack[i].URL) + 16
	}
	if r.Response != nil {
		w := &r.Response.Value
		n += len(w.StatusText) + len(w.URL) + len(w.MIMEType) + weighHeaders(w.Headers) + weighHeaders(w.RequestHeaders)
		if w.TLS != nil {
			n += len(w.TLS.Subject) + len(w.TLS.Issuer)
			for _, name := range w.TLS.Names {
				n += len(name) + 16
			}
		}
	}
	if r.End != nil {
		n += len(r.End.Error) + weighHeaders(r.End.Trailers)
	}
	if r.Error != nil {
		n += len(r.Error.Text)
	}
	return n
}

func weighHeaders(list []Header) int {
	n := 0
	for i := range list {
		n += len(list[i][0]) + len(list[i][1]) + 32
	}
	return n
}

// weighed changes a running request and keeps the sums right.
func (s *State) weighed(r *Request, change func()) {
	s.bytes -= r.bytes()
	head, end := r.Response, r.Ending
	change()
	if r.Response != head || r.Ending != end {
		r.fixed = r.weigh()
	}
	if r.Ending != Running {
		s.running--
	}
	s.bytes += r.bytes()
}

// makeRoom gives up the oldest requests until the bounds are kept, save the one that changed.
func (s *State) makeRoom(c *Change, keep Keep) {
	for over := len(s.Requests); ; over-- {
		many := keep.Requests > 0 && len(s.Requests) > keep.Requests
		large := keep.Bytes > 0 && s.bytes > keep.Bytes
		oldest := s.Requests[0]
		if !many && !large || oldest == c.Request {
			return
		}
		// A running one gets another turn, as long as these are few and the turns end.
		if oldest.Ending == Running && s.running <= keep.Requests/runningShare && over > 0 {
			s.Requests = append(s.take(), oldest)
			s.Started++
			oldest.Order = s.Started
			c.Moved = append(c.Moved, oldest)
			continue
		}
		s.Requests = s.take()
		s.forget(oldest)
		c.Evicted = append(c.Evicted, oldest)
	}
}

// take gives up the first place and returns the others.
func (s *State) take() []*Request {
	s.Requests[0] = nil
	s.Evicted++
	return s.Requests[1:]
}

// forget removes a request from everything but the list.
func (s *State) forget(r *Request) {
	delete(s.byKey, key{r.Generation, r.ID()})
	if k := r.chain(); s.newest[k] == r {
		delete(s.newest, k)
	}
	if r.Ending == Running {
		s.running--
	}
	s.bytes -= r.bytes()
}

// chain names the chain of redirects that a request belongs to.
func (r *Request) chain() key {
	if r.Root != "" {
		return key{r.Generation, r.Root}
	}
	return key{r.Generation, r.ID()}
}

// rootOf returns the root of a new request that a redirect led to. Where the
// request before is not known, had no response, or led elsewhere already, the
// new one stands for itself.
func (s *State) rootOf(generation string, v Start) RequestID {
	if v.RedirectOf == "" {
		return ""
	}
	before := s.Get(generation, v.RedirectOf)
	if before == nil || before.Response == nil || before.Start.Value.Direction != v.Direction || s.Continued(before) {
		return ""
	}
	return before.chain().id
}

// extend makes r the last request of its chain.
func (s *State) extend(r *Request) {
	if s.newest == nil {
		s.newest = make(map[key]*Request)
	}
	k := r.chain()
	if last := s.newest[k]; last == nil || last.Start.T <= r.Start.T {
		s.newest[k] = r
	}
}

// Last returns the last request of the chain of redirects that began with id, as
// far as it is kept, or the request itself if no redirect followed it, or nil.
func (s *State) Last(generation string, id RequestID) *Request {
	if r := s.newest[key{generation, id}]; r != nil {
		return r
	}
	return s.Get(generation, id)
}

// Before returns the request whose response led to r, or nil if there is none or it is not kept.
func (s *State) Before(r *Request) *Request {
	if r.Root == "" {
		return nil
	}
	return s.Get(r.Generation, r.Start.Value.RedirectOf)
}

// Continued reports whether a redirect led from r to another request.
func (s *State) Continued(r *Request) bool {
	last := s.newest[r.chain()]
	return last != nil && last != r
}
