package query

import "context"

// API answers questions about one space. The Client asks them over NATS,
// package engine answers them from a replica. Errors wrap one of the sentinels.
type API interface {
	// Sources lists the inspected programs.
	Sources(context.Context, SourcesRequest) (SourcesAnswer, error)
	// Tree reads a part of a source's tree.
	Tree(context.Context, TreeRequest) (TreeAnswer, error)
	// FindNodes finds nodes of any tree.
	FindNodes(context.Context, FindRequest) (FindAnswer, error)
	// Node reads one node with its values and what changed of it.
	Node(context.Context, NodeRequest) (NodeAnswer, error)
	// Values reads values of a node, or what is inside of one.
	Values(context.Context, ValuesRequest) (ValuesAnswer, error)
	// Requests lists captured requests.
	Requests(context.Context, RequestsRequest) (RequestsAnswer, error)
	// Request reads one request in full.
	Request(context.Context, RequestRequest) (RequestAnswer, error)
	// Body reads a range of a captured body.
	Body(context.Context, BodyRequest) (BodyAnswer, error)
	// Console lists log lines, console calls and exceptions.
	Console(context.Context, ConsoleRequest) (ConsoleAnswer, error)
	// History lists what changed in trees, with the values before and after.
	History(context.Context, HistoryRequest) (HistoryAnswer, error)
	// Faults lists what went wrong with the records of sources.
	Faults(context.Context, FaultsRequest) (FaultsAnswer, error)
	// Search finds requests, console entries, nodes and values in all sources.
	Search(context.Context, SearchRequest) (SearchAnswer, error)
	// Cordis reads the trees of the Cordis runtimes.
	Cordis(context.Context, CordisRequest) (CordisAnswer, error)
	// Watch answers what is there and then, question by question, everything after it.
	Watch(context.Context, WatchRequest) (WatchAnswer, error)
	// Evaluate has a program evaluate an expression.
	Evaluate(context.Context, EvaluateRequest) (EvaluateAnswer, error)
	// Edit has a program change one value of a node.
	Edit(context.Context, EditRequest) (EditAnswer, error)
	// Highlight has a page show where a node is.
	Highlight(context.Context, HighlightRequest) (HighlightAnswer, error)
}
