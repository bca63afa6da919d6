// Package store keeps the state of a space: it folds every record and writes
// the result to the state bucket, so that late joiners need no history.
package store
