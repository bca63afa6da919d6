package cdpgw

// protocolDomain is one domain in the answer of /json/protocol.
type protocolDomain struct {
	Domain   string         `json:"domain"`
	Types    []protocolItem `json:"types"`
	Commands []protocolItem `json:"commands"`
	Events   []protocolItem `json:"events"`
}

type protocolItem struct {
	Name string `json:"name"`
}

// protocol returns the description of what the gateway implements.
func protocol() any {
	return map[string]any{
		"version": map[string]string{"major": "1", "minor": "3"},
		"domains": []protocolDomain{},
	}
}
