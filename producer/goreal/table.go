package goreal

import (
	"strconv"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
	"github.com/natscope/natscope/subjects/value"
)

// maxTable is how many bytes of one table are recorded; what comes after is only counted.
const maxTable = 128 << 10

// tabled is the value of console.table as records carry it: two levels deep, so
// that its rows have columns after the program is gone, too.
func tabled(o mirror.Object) value.Value {
	t, ok := o.(interface{ Table() *remote.Preview })
	if !ok {
		return encoded(o)
	}
	p := t.Table()
	if p == nil {
		return encoded(o)
	}
	whole := o.Remote(nil, false)
	v := value.Value{Kind: value.Instance, Name: whole.ClassName, Partial: p.Overflow}
	switch {
	case whole.Subtype == "array":
		v.Kind, v.Name = value.Array, ""
	case whole.ClassName == "Object":
		v.Kind, v.Name = value.Object, ""
	}
	size := 0
	for _, r := range p.Properties {
		x := propertyValue(r)
		if q := r.ValuePreview; q != nil && len(q.Properties)+len(q.Entries) > 0 {
			x = containerValue(remote.Object{Type: "object", Subtype: q.Subtype, ClassName: q.Description, Description: q.Description, Preview: q})
		}
		if size += len(r.Name) + len(value.Append(nil, x)); size > maxTable {
			v.Partial = true
			break
		}
		if v.Kind != value.Array {
			v.Fields = append(v.Fields, value.Field{Name: r.Name, Value: x})
		} else if _, err := strconv.Atoi(r.Name); err == nil {
			v.Items = append(v.Items, x)
		}
	}
	v.Size = max(len(v.Items), len(v.Fields))
	if v.Partial {
		v.Size = max(v.Size+1, len(p.Properties), sizeIn(whole.Description))
	}
	return v
}
