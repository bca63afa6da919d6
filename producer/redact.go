package producer

import "github.com/natscope/natscope/producer/redact"

// Redact says what of requests must not leave the process: header values, query
// and form fields, members of JSON, and what matches patterns. The zero value
// takes nothing out.
type Redact = redact.Rules

// RedactSecrets returns rules for what is a secret nearly everywhere:
// credentials in headers, tokens and passwords in queries, forms and JSON, and
// texts that have the form of well-known keys. Add your own with And.
func RedactSecrets() Redact { return redact.Secrets() }

// Redactor applies Options.Redact; packages that capture requests ask it about
// everything that they tell. It is nil without rules, and a nil one changes nothing.
func (p *Producer) Redactor() *redact.Redactor { return p.redactor }
