// Package answertable reads static answers from a DynamoDB table. An item is an entry with the fields of an entry in a
// file:
//
//	id         S, the partition key; there is no sort key
//	questions  L or SS of texts, or M of those by language
//	keywords   the same
//	answer     S, or M of texts by language
//	languages  L or SS of texts
//
// If the table cannot be read, the answers of the last successful read stay in use.
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

// API has the methods of DynamoDB's client that a Table uses.
type API interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

var _ API = (*dynamodb.Client)(nil)

// A Table has the answers of a table. Create it with New. It is safe for concurrent use.
type Table struct {
	api  API
	name string
	book answers.Book

	reading sync.Mutex // one Read at a time
	mu      sync.Mutex // protects the fields below
	state   State
}

// State is the result of reading.
type State struct {
	Entries int            // in use
	Bad     int            // mistakes in skipped rows
	Read    time.Time      // time of the last successful read; zero if there is none
	Err     error          // of the last Read; nil if it succeeded
	Failed  int64          // number of failed reads
	Wrong   answers.Errors // mistakes in rows
}

// New returns a Table without answers. Read fills it. threshold is the Threshold of its answers.Book.
func New(api API, table string, threshold float64) *Table {
	t := &Table{api: api, name: table}
	t.book.Threshold = threshold
	return t
}

// Book returns the book that Read fills.
func (t *Table) Book() *answers.Book { return &t.book }

// State returns the current state.
func (t *Table) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.state
	s.Entries = t.book.Len()
	return s
}

// Read reads the entire table. Invalid rows are skipped, and their mistakes are returned. An error changes nothing.
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

// read converts an item to a row. left is the remaining number of bytes for texts.
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
	return nil // counts as empty, which is reported
}
