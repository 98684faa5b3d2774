// Package answertable reads answers that were written beforehand from a table of DynamoDB. An item is an entry, with the
// fields that one has in a file:
//
//	id         S, the partition key; there is no sort key
//	questions  L or SS of texts, or M of those by language
//	keywords   the same
//	answer     S, or M of texts by language
//	languages  L or SS of texts
//
// The answers of the table that were read last stay in force while it cannot be read.
package answertable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/cascade/answers"
)

// API is what is used of DynamoDB's client.
type API interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

var _ API = (*dynamodb.Client)(nil)

// A Table is the answers of a table. Make it with New; it is safe for concurrent use.
type Table struct {
	api  API
	name string
	book answers.Book

	reading sync.Mutex // one Read at a time
	mu      sync.Mutex // of what follows
	state   State
}

// State is how reading went.
type State struct {
	Entries int            // in force
	Bad     int            // mistakes in rows that were left out
	Read    time.Time      // when those in force were read; zero if none were yet
	Err     error          // of the last Read, nil if that was good
	Failed  int64          // reads that failed
	Wrong   answers.Errors // what was wrong with rows
}

// New is the answers of a table, of which none are read yet. threshold is that of answers.Book.
func New(api API, table string, threshold float64) *Table {
	t := &Table{api: api, name: table}
	t.book.Threshold = threshold
	return t
}

// Book is what Read fills.
func (t *Table) Book() *answers.Book { return &t.book }

// State is how reading went so far.
func (t *Table) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.state
	s.Entries = t.book.Len()
	return s
}

// Read reads the whole table. Rows that are wrong are left out, and told. An error changes nothing.
func (t *Table) Read(ctx context.Context) (answers.Errors, error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	rows, err := t.scan(ctx)
	var wrong answers.Errors
	if err == nil {
		wrong, err = t.book.Rows("table "+t.name, rows)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Err = err; err != nil {
		t.state.Failed++
		return nil, err
	}
	t.state.Bad, t.state.Wrong, t.state.Read = len(wrong), wrong, time.Now()
	return wrong, nil
}

var errLarge = fmt.Errorf("has more than %d MiB of texts", answers.MaxBytes>>20)

func (t *Table) scan(ctx context.Context) (rows []answers.Row, err error) {
	left := answers.MaxBytes
	in := &dynamodb.ScanInput{TableName: &t.name}
	for {
		out, err := t.api.Scan(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("static answers: table %s: %w", t.name, err)
		}
		for _, item := range out.Items {
			row, err := read(item, &left)
			if err == nil && len(rows) == answers.MaxRows {
				err = fmt.Errorf("has more than %d rows", answers.MaxRows)
			}
			if err != nil {
				return nil, fmt.Errorf("static answers: table %s: %w", t.name, err)
			}
			rows = append(rows, row)
		}
		if len(out.LastEvaluatedKey) == 0 {
			return rows, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// read is an item as a row. left is how many bytes its texts may have.
func read(item map[string]types.AttributeValue, left *int) (answers.Row, error) {
	row := answers.Row{Fields: make(map[string]any, len(item))}
	for name, v := range item {
		is := plain(v, left)
		if *left -= len(name); *left < 0 {
			return row, errLarge
		}
		if name == "id" {
			row.ID, _ = is.(string)
			continue
		}
		row.Fields[name] = is
	}
	if row.ID == "" {
		return row, errors.New("its partition key is not id, a text")
	}
	return row, nil
}

// plain is a value as texts, lists and mappings.
func plain(v types.AttributeValue, left *int) any {
	text := func(s string) string { *left -= len(s); return s }
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return text(v.Value)
	case *types.AttributeValueMemberN:
		return text(v.Value)
	case *types.AttributeValueMemberSS:
		all := make([]any, len(v.Value))
		for i, s := range v.Value {
			all[i] = text(s)
		}
		return all
	case *types.AttributeValueMemberL:
		all := make([]any, len(v.Value))
		for i, e := range v.Value {
			all[i] = plain(e, left)
		}
		return all
	case *types.AttributeValueMemberM:
		all := make(map[string]any, len(v.Value))
		for name, e := range v.Value {
			all[text(name)] = plain(e, left)
		}
		return all
	}
	return nil // reads as empty, which is told
}
