package cdpgw

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/natscope/natscope/subjects/network"
)

// requestExtraEvent tells the cookies of a request, which DevTools lists only
// when it comes this way. It is sent for requests with cookies alone.
type requestExtraEvent struct {
	RequestID                     RequestID          `json:"requestId"`
	AssociatedCookies             []associatedCookie `json:"associatedCookies"`
	Headers                       headers            `json:"headers"`
	ConnectTiming                 connectTiming      `json:"connectTiming"`
	SiteHasCookieInOtherPartition bool               `json:"siteHasCookieInOtherPartition"`
}

type connectTiming struct {
	RequestTime float64 `json:"requestTime"`
}

type associatedCookie struct {
	Cookie         cookie   `json:"cookie"`
	BlockedReasons []string `json:"blockedReasons"`
}

// cookie is a cookie as the protocol describes one of a browser's store; of one
// that was sent, only name and value are known.
type cookie struct {
	Name               string  `json:"name"`
	Value              string  `json:"value"`
	Domain             string  `json:"domain"`
	Path               string  `json:"path"`
	Expires            float64 `json:"expires"`
	Size               int     `json:"size"`
	HTTPOnly           bool    `json:"httpOnly"`
	Secure             bool    `json:"secure"`
	Session            bool    `json:"session"`
	Priority           string  `json:"priority"`
	SourceScheme       string  `json:"sourceScheme"`
	SourcePort         int     `json:"sourcePort"`
	PartitionKeyOpaque bool    `json:"partitionKeyOpaque"`
}

// responseExtraEvent is what goes with the response to a request with cookies.
// DevTools takes the headers from here and no others later, so what the end of
// such a request brings is seen when it is replayed.
type responseExtraEvent struct {
	RequestID                RequestID `json:"requestId"`
	BlockedCookies           []empty   `json:"blockedCookies"`
	Headers                  headers   `json:"headers"`
	ResourceIPAddressSpace   string    `json:"resourceIPAddressSpace"`
	StatusCode               int       `json:"statusCode"`
	CookiePartitionKeyOpaque bool      `json:"cookiePartitionKeyOpaque"`
}

func hasCookies(list []network.Header) bool { return headerOf(list, "Cookie") != "" }

// cookiesOf reads the Cookie headers of a request. What is not a cookie is left out.
func cookiesOf(list []network.Header, address string) []associatedCookie {
	out := []associatedCookie{}
	u, _ := url.Parse(address)
	for _, line := range list {
		if !strings.EqualFold(line[0], "Cookie") {
			continue
		}
		// Each by itself: one that cannot be read must not hide the others.
		for part := range strings.SplitSeq(line[1], ";") {
			parsed, err := http.ParseCookie(part)
			if err != nil {
				continue
			}
			for _, c := range parsed {
				x := cookie{Name: c.Name, Value: c.Value, Path: "/", Expires: -1, Size: len(c.Name) + len(c.Value), Session: true, Priority: "Medium", SourceScheme: "Unset", SourcePort: -1}
				if u != nil {
					x.Domain = u.Hostname()
				}
				out = append(out, associatedCookie{Cookie: x, BlockedReasons: []string{}})
			}
		}
	}
	return out
}

func (p projection) requestExtra(r *network.Request, sent []network.Header) []byte {
	return encodeEvent("Network.requestWillBeSentExtraInfo", requestExtraEvent{
		RequestID: p.id(r), AssociatedCookies: cookiesOf(sent, r.Start.Value.URL), Headers: headersOf(sent), ConnectTiming: connectTiming{seconds(r, r.Start.T)},
	})
}

func (p projection) responseExtra(r *network.Request) []byte {
	v := p.responseOf(r)
	return encodeEvent("Network.responseReceivedExtraInfo", responseExtraEvent{
		RequestID: p.id(r), BlockedCookies: []empty{}, Headers: v.Headers, ResourceIPAddressSpace: "Unknown", StatusCode: v.Status,
	})
}
