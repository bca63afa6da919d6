package graph

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
)

// header is what a snapshot begins with. DevTools reads the members in V8's order.
const header = `{"snapshot":{"meta":{` +
	`"node_fields":["type","name","id","self_size","edge_count","detachedness"],` +
	`"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","concatenated string","sliced string","symbol","bigint","object shape"],"string","number","number","number","number"],` +
	`"edge_fields":["type","name_or_index","to_node"],` +
	`"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],` +
	`"trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],` +
	`"trace_node_fields":["id","function_info_index","count","size","children"],` +
	`"sample_fields":["timestamp_us","last_assigned_id"],` +
	`"location_fields":["object_index","script_id","line","column"]},`

// nodeFields is how many numbers a node has.
const nodeFields = 6

// Write writes the graph as a .heapsnapshot.
func (g *Graph) Write(to io.Writer) error {
	w := bufio.NewWriterSize(to, 64<<10)
	count := 0
	for i := range g.Nodes {
		count += len(g.Nodes[i].edges)
	}
	w.WriteString(header + `"node_count":` + strconv.Itoa(len(g.Nodes)) + `,"edge_count":` + strconv.Itoa(count) + `,"trace_function_count":0},` + "\n" + `"nodes":[`)
	var buf []byte
	numbers := func(first bool, ns ...int) {
		buf = buf[:0]
		for i, n := range ns {
			if !first || i > 0 {
				buf = append(buf, ',')
			}
			buf = strconv.AppendInt(buf, int64(n), 10)
		}
		w.Write(buf)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		numbers(i == 0, n.kind, n.name, ID(i), n.size, len(n.edges), 0)
	}
	w.WriteString("],\n\"edges\":[")
	first := true
	for i := range g.Nodes {
		for _, e := range g.Nodes[i].edges {
			numbers(first, e.kind, e.name, e.to*nodeFields)
			first = false
		}
	}
	w.WriteString("],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n\"locations\":[],\n\"strings\":[")
	for i, s := range g.texts {
		if i > 0 {
			w.WriteString(",\n")
		}
		b, _ := json.Marshal(s)
		w.Write(b)
	}
	w.WriteString("]}")
	return w.Flush()
}
