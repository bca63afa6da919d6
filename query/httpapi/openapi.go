package httpapi

import (
	"reflect"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/schema"
)

// Describe returns the OpenAPI description of everything below Root.
func Describe(version string) schema.Schema {
	set := &schema.Set{Prefix: "#/components/schemas/", Named: make(map[string]schema.Schema)}
	paths := schema.Schema{}
	for _, v := range query.Verbs() {
		paths["/"+v.Name] = path(set, v)
	}
	set.Of(reflect.TypeFor[query.Error]())
	return schema.Schema{
		"openapi": "3.0.3",
		"info": schema.Schema{
			"title": "natscope", "version": version,
			"description": "What DevTools shows of the programs in a space, for programs. Ids lead to the same thing for good, or to an error. Lists are paged: next goes on, also later.",
		},
		"servers":    []schema.Schema{{"url": "/api/v1"}},
		"paths":      paths,
		"components": schema.Schema{"schemas": set.Named, "securitySchemes": schema.Schema{"token": schema.Schema{"type": "http", "scheme": "bearer"}}},
		"security":   []schema.Schema{{}, {"token": []string{}}},
	}
}

// path describes one verb, asked with parameters or with a body.
func path(set *schema.Set, v *query.Verb) schema.Schema {
	answers := schema.Schema{
		"200": schema.Schema{"description": v.Title, "content": content(set, v)},
		"default": schema.Schema{
			"description": "why there is no answer, and what to do next",
			"content":     schema.Schema{"application/json": schema.Schema{"schema": set.Of(reflect.TypeFor[query.Error]())}},
		},
	}
	parameters := []schema.Schema{}
	for _, f := range schema.Fields(v.Question) {
		parameters = append(parameters, schema.Schema{
			"name": f.Name, "in": "query", "description": f.Doc, "required": !f.Optional, "schema": schema.Inline(wrap(f.Type))["properties"].(schema.Schema)["V"],
		})
	}
	post := schema.Schema{
		"operationId": v.Name + "Post", "summary": v.Title, "description": v.Doc, "responses": answers,
		"requestBody": schema.Schema{"content": schema.Schema{"application/json": schema.Schema{"schema": set.Of(v.Question)}}},
	}
	if v.Changes {
		return schema.Schema{"post": post}
	}
	return schema.Schema{
		"get":  schema.Schema{"operationId": v.Name, "summary": v.Title, "description": v.Doc, "parameters": parameters, "responses": answers},
		"post": post,
	}
}

// wrap makes a struct with one field of a type, whose schema can then be asked for.
func wrap(t reflect.Type) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "V", Type: t}})
}

func content(set *schema.Set, v *query.Verb) schema.Schema {
	out := schema.Schema{"application/json": schema.Schema{"schema": set.Of(v.Answer)}}
	if v.Name == "watch" {
		out["text/event-stream"] = schema.Schema{"schema": schema.Schema{"type": "string", "description": "server-sent events: the data of each is an Event, its id is the after of a watch that goes on behind it"}}
	}
	return out
}
