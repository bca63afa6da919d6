package command

// NewSessionsEvery is NewSessions with other times.
var NewSessionsEvery = newSessions
