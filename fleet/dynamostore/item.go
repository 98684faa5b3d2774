package dynamostore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// longestName is the longest key that is stored unhashed. DynamoDB allows 2,048 bytes of valid text.
const longestName = 1024

// name encodes texts unambiguously: different lists of texts have different names.
func name(kind string, texts ...string) string {
	n, whole := kind, true
	for _, t := range texts {
		n += fmt.Sprintf("/%d:%s", len(t), t)
		whole = whole && utf8.ValidString(t)
	}
	if whole && len(n) <= longestName {
		return n
	}
	sum := sha256.Sum256([]byte(n))
	return kind + "#" + hex.EncodeToString(sum[:])
}

func keyOf(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: name}}
}

// suffix returns the end of the attribute names of a limit. It begins with a digit. So no name with a letter before
// it is a reserved word of DynamoDB.
func suffix(limit string) string {
	h := fnv.New64a()
	h.Write([]byte(limit))
	v := h.Sum64()
	v ^= v >> 32
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	b := []byte{'0' + byte(v%8), 0, 0, 0, 0, 0, 0}
	for i := range 6 {
		v >>= 5
		b[i+1] = letters[v%32]
	}
	return string(b)
}

// An item is the copy of an item's attributes. Numbers are stored as text.
type item map[string]string

func (i item) number(name string) (n int64, ok bool) {
	text, ok := i[name]
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

func (i item) learn(attributes map[string]types.AttributeValue) {
	for name, v := range attributes {
		switch v := v.(type) {
		case *types.AttributeValueMemberN:
			i[name] = v.Value
		case *types.AttributeValueMemberS:
			i[name] = v.Value
		}
	}
}

// An entry is the process's copy of an item. A call holds the entry while it plans an update. A read, or an update
// that allows no concurrent one, holds the entry until the response. Then all waiting calls have the response.
type entry struct {
	name string
	hold chan struct{}

	mu    sync.Mutex
	item  item
	known bool             // the complete item was read by a request sent at asOf
	asOf  int64            //
	order map[string]int64 // send time of the request that returned an attribute, if later than asOf
	seen  map[string]sight // age of bases and slots
	epoch int
	ahead map[string]int64 // units that updates in progress add, by limit
	seats map[string]int   // updates in progress, by seat
	used  map[string]bool  // limits from which this process has taken units
}

// A sight is a value of an attribute and when it was written, by the process's clock: not before early, and not
// after late.
type sight struct {
	value       string
	early, late int64
}

const longAgo = -1 << 62

func newEntry(name string) *entry {
	return &entry{
		name: name, hold: make(chan struct{}, 1), asOf: longAgo, item: make(item),
		order: make(map[string]int64), seen: make(map[string]sight), ahead: make(map[string]int64), seats: make(map[string]int), used: make(map[string]bool),
	}
}

func (s *Store) entry(name string) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.items[name]
	if e != nil {
		return e
	}
	for old := range s.items {
		if len(s.items) < s.o.Items {
			break
		}
		delete(s.items, old) // any entry: a missing copy costs a failed condition
	}
	e = newEntry(name)
	s.items[name] = e
	return e
}

func (e *entry) lock(ctx context.Context) error {
	select {
	case e.hold <- struct{}{}:
		return nil
	default:
	}
	select {
	case e.hold <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *entry) unlock() { <-e.hold }

// replace takes over the complete item from a response. sent and received are when the request was sent and the
// response arrived. Attributes from later requests stay.
func (e *entry) replace(attributes map[string]types.AttributeValue, sent, received int64) {
	if e.known && sent < e.asOf {
		return
	}
	next := make(item, len(attributes))
	next.learn(attributes)
	for name, at := range e.order {
		if at <= sent {
			delete(e.order, name)
			continue
		}
		delete(next, name)
		if v, ok := e.item[name]; ok {
			next[name] = v
		}
	}
	before := e.asOf
	e.item, e.known, e.asOf = next, true, sent
	for name := range next {
		e.look(name, before, received)
	}
	for name := range e.seen {
		if _, ok := next[name]; !ok {
			delete(e.seen, name)
		}
	}
}

// change takes over the attributes that an update returned.
func (e *entry) change(attributes map[string]types.AttributeValue, removed []string, sent, received int64) {
	next := make(item, len(attributes))
	next.learn(attributes)
	for name, v := range next {
		if before := max(e.order[name], e.asOf); before > sent && !(adds(name) && larger(v, e.item[name])) {
			continue // which of the two was executed first is unknown
		}
		if back, ok := backOf(name); ok {
			if n, ok := next[back]; ok {
				e.order[back], e.item[back] = max(sent, e.order[back]), n
			}
		}
		e.order[name], e.item[name] = max(sent, e.order[name]), v
		e.look(name, sent, received)
	}
	for _, name := range removed {
		e.order[name] = sent
		delete(e.item, name)
		delete(e.seen, name)
	}
}

// sits records the content of a seat. Usually no other process writes it, so responses to earlier requests are not
// newer.
func (e *entry) sits(seat, told string, received int64) {
	e.item[seat], e.order[seat] = told, received
}

// adds reports whether updates add to an attribute. Of two values of it, the larger is the safer one.
func adds(name string) bool { return strings.IndexByte("tcyr", name[0]) >= 0 }

// backOf returns the attribute h that belongs to a count c. Every response with c contains h, the units returned at
// that time. A count with the h of another response would be too large forever, because the process reports it as
// known usage.
func backOf(count string) (name string, ok bool) { return "h" + count[1:], count[0] == 'c' }

// larger compares non-negative numbers.
func larger(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

// wrote records that this process wrote an attribute, no earlier than sent.
func (e *entry) wrote(name string, sent int64) {
	if s, ok := e.seen[name]; ok && s.early < sent && sent <= s.late {
		s.early = sent
		e.seen[name] = s
	}
}

// look records when an attribute got its value.
func (e *entry) look(name string, before, received int64) {
	if strings.IndexByte("bjsz", name[0]) < 0 {
		return
	}
	if old, ok := e.seen[name]; !ok || old.value != e.item[name] {
		e.seen[name] = sight{e.item[name], before, received}
	}
}

// awake discards measurements of a clock that has stopped meanwhile.
func (e *entry) awake(epoch int) {
	if e.epoch != epoch {
		e.epoch = epoch
		clear(e.seen)
	}
}

// flies adds the units of an update in progress to a limit. A negative n removes them.
func (e *entry) flies(limit string, n int64) {
	if e.ahead[limit] += n; e.ahead[limit] == 0 {
		delete(e.ahead, limit)
	}
}
