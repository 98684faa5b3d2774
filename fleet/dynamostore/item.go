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

// longestName is how long a key may be to stand in the table as it is: DynamoDB takes
// 2,048 bytes of valid text. A longer one is replaced by its hash.
const longestName = 1024

// name joins texts so that no two lists of texts have the same name.
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

// suffix is what the attributes of a limit end in. With a letter before it no word
// comes out that DynamoDB has reserved, for it begins with a digit.
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

// An item is what a process knows of an item: numbers and texts alike as text.
type item map[string]string

func (i item) number(name string) (n int64, ok bool) {
	text, ok := i[name]
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// learn takes over attributes from an answer.
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

// An entry is what a process remembers of an item. A call that plans an update of it
// holds the entry. A read, or an update that bears no other beside it, holds the entry until it is
// answered, and then all calls that waited know the answer.
type entry struct {
	name string
	hold chan struct{}

	mu    sync.Mutex
	item  item
	known bool             // the whole item was read, by a request sent at asOf
	asOf  int64            //
	order map[string]int64 // when the request was sent that told of an attribute, if later
	seen  map[string]sight // since when bases and slots are as they are
	epoch int
	ahead map[string]int64 // what updates on their way add, by limit
	seats map[string]int   // how many updates are on their way, by seat
	used  map[string]bool  // limits of which this process has taken something
}

// A sight says when, by our clock, something was written: not before early, and
// not after late.
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
		delete(s.items, old) // any one: it costs a failed condition
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

// replace takes over the whole item from an answer to a request that was sent and
// received at these instants. What was told by later ones stays.
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

// change takes over what an update has left behind.
func (e *entry) change(attributes map[string]types.AttributeValue, removed []string, sent, received int64) {
	next := make(item, len(attributes))
	next.learn(attributes)
	for name, v := range next {
		if before := max(e.order[name], e.asOf); before > sent && !(adds(name) && larger(v, e.item[name])) {
			continue // it is not known which of the two was first
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

// sits notes what is in a seat. Nobody else writes there, as a rule, so answers to
// requests that were on their way already do not know better.
func (e *entry) sits(seat, told string, received int64) {
	e.item[seat], e.order[seat] = told, received
}

// adds tells numbers that are added to. Of two of them the larger is the safer guess.
func adds(name string) bool { return strings.IndexByte("tcyr", name[0]) >= 0 }

// backOf is the attribute that is one reading with a count, and is in each answer that has that: how much of it had come back then. A
// count of one answer with what had come back by another would be too large for ever, for whoever says that so much has gone at least.
func backOf(count string) (name string, ok bool) { return "h" + count[1:], count[0] == 'c' }

// larger compares numbers that are not negative.
func larger(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

// wrote notes of an attribute that this process itself has written it, no earlier than the instant.
func (e *entry) wrote(name string, sent int64) {
	if s, ok := e.seen[name]; ok && s.early < sent && sent <= s.late {
		s.early = sent
		e.seen[name] = s
	}
}

// look notes since when an attribute is as it is.
func (e *entry) look(name string, before, received int64) {
	if strings.IndexByte("bjsz", name[0]) < 0 {
		return
	}
	if old, ok := e.seen[name]; !ok || old.value != e.item[name] {
		e.seen[name] = sight{e.item[name], before, received}
	}
}

// awake forgets what was measured by a clock that has stood still meanwhile.
func (e *entry) awake(epoch int) {
	if e.epoch != epoch {
		e.epoch = epoch
		clear(e.seen)
	}
}

// flies notes what an update on its way adds to a limit; less than 0 takes that back.
func (e *entry) flies(limit string, n int64) {
	if e.ahead[limit] += n; e.ahead[limit] == 0 {
		delete(e.ahead, limit)
	}
}
