package cdpgw

import "github.com/natscope/natscope/subjects/network"

type requestWillBeSentEvent struct {
	RequestID   RequestID   `json:"requestId"`
	LoaderID    string      `json:"loaderId"`
	DocumentURL string      `json:"documentURL"`
	Request     requestInfo `json:"request"`
	Timestamp   float64     `json:"timestamp"`
	WallTime    float64     `json:"wallTime"`
	Initiator   initiator   `json:"initiator"`
	// RedirectResponse is the response that led here, for a request that continues a chain.
	RedirectResponse     *responseInfo `json:"redirectResponse,omitempty"`
	RedirectHasExtraInfo bool          `json:"redirectHasExtraInfo"`
	Type                 resourceType  `json:"type"`
	FrameID              FrameID       `json:"frameId"`
	HasUserGesture       bool          `json:"hasUserGesture"`
}

type requestInfo struct {
	URL              string  `json:"url"`
	Method           string  `json:"method"`
	Headers          headers `json:"headers"`
	HasPostData      bool    `json:"hasPostData,omitempty"`
	MixedContentType string  `json:"mixedContentType"`
	InitialPriority  string  `json:"initialPriority"`
	ReferrerPolicy   string  `json:"referrerPolicy"`
}

type initiator struct {
	Type  string      `json:"type"`
	Stack *stackTrace `json:"stack,omitempty"`
	URL   string      `json:"url,omitempty"`
	// LineNumber is that of URL, counted from 0.
	LineNumber int `json:"lineNumber,omitempty"`
}

type responseReceivedEvent struct {
	RequestID    RequestID    `json:"requestId"`
	LoaderID     string       `json:"loaderId"`
	Timestamp    float64      `json:"timestamp"`
	Type         resourceType `json:"type"`
	Response     responseInfo `json:"response"`
	HasExtraInfo bool         `json:"hasExtraInfo"`
	FrameID      FrameID      `json:"frameId"`
}

type responseInfo struct {
	URL               string           `json:"url"`
	Status            int              `json:"status"`
	StatusText        string           `json:"statusText"`
	Headers           headers          `json:"headers"`
	MimeType          string           `json:"mimeType"`
	Charset           string           `json:"charset"`
	RequestHeaders    headers          `json:"requestHeaders"`
	ConnectionReused  bool             `json:"connectionReused"`
	ConnectionID      float64          `json:"connectionId"`
	RemoteIPAddress   string           `json:"remoteIPAddress,omitempty"`
	RemotePort        int              `json:"remotePort,omitempty"`
	EncodedDataLength float64          `json:"encodedDataLength"`
	Timing            *resourceTiming  `json:"timing,omitempty"`
	ResponseTime      float64          `json:"responseTime"`
	Protocol          string           `json:"protocol,omitempty"`
	SecurityState     string           `json:"securityState"`
	SecurityDetails   *securityDetails `json:"securityDetails,omitempty"`
}

// securityDetails describes the encryption of a connection. The protocol wants
// every field; natscope does not look at certificate transparency.
type securityDetails struct {
	Protocol                          string   `json:"protocol"`
	KeyExchange                       string   `json:"keyExchange"`
	KeyExchangeGroup                  string   `json:"keyExchangeGroup,omitempty"`
	Cipher                            string   `json:"cipher"`
	CertificateID                     int      `json:"certificateId"`
	SubjectName                       string   `json:"subjectName"`
	SanList                           []string `json:"sanList"`
	Issuer                            string   `json:"issuer"`
	ValidFrom                         float64  `json:"validFrom"`
	ValidTo                           float64  `json:"validTo"`
	SignedCertificateTimestampList    []empty  `json:"signedCertificateTimestampList"`
	CertificateTransparencyCompliance string   `json:"certificateTransparencyCompliance"`
	EncryptedClientHello              bool     `json:"encryptedClientHello"`
}

// securityDetailsOf returns nil where nothing is known.
func securityDetailsOf(t *network.TLS) *securityDetails {
	if t == nil {
		return nil
	}
	return &securityDetails{
		Protocol: t.Version, KeyExchangeGroup: t.Group, Cipher: t.Cipher, SubjectName: t.Subject, SanList: append([]string{}, t.Names...), Issuer: t.Issuer,
		ValidFrom: t.ValidFrom, ValidTo: t.ValidTo, SignedCertificateTimestampList: []empty{}, CertificateTransparencyCompliance: "unknown",
	}
}

type dataReceivedEvent struct {
	RequestID         RequestID `json:"requestId"`
	Timestamp         float64   `json:"timestamp"`
	DataLength        int64     `json:"dataLength"`
	EncodedDataLength int64     `json:"encodedDataLength"`
	Data              []byte    `json:"data,omitempty"`
}

type loadingFinishedEvent struct {
	RequestID         RequestID `json:"requestId"`
	Timestamp         float64   `json:"timestamp"`
	EncodedDataLength float64   `json:"encodedDataLength"`
}

type loadingFailedEvent struct {
	RequestID RequestID    `json:"requestId"`
	Timestamp float64      `json:"timestamp"`
	Type      resourceType `json:"type"`
	ErrorText string       `json:"errorText"`
	Canceled  bool         `json:"canceled"`
}

type eventSourceMessageEvent struct {
	RequestID RequestID `json:"requestId"`
	Timestamp float64   `json:"timestamp"`
	EventName string    `json:"eventName"`
	EventID   string    `json:"eventId"`
	Data      string    `json:"data"`
}
