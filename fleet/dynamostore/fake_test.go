package dynamostore

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// A fake is the part of DynamoDB that a Store uses, in this process, with a clock and a network of the test. It
// follows the documentation also where emulators do not: a failed condition returns the item. It is an HTTP client.
type fake struct {
	now  func() time.Time         // true time
	wait func()                   // called before and after each request
	took func(item map[string]av) // called with each updated item

	mu    sync.Mutex
	items map[string]map[string]av
}

// An av is an attribute value in the wire format: {"N": "1"}.
type av = map[string]any

func newFake(now func() time.Time) *fake {
	return &fake{now: now, wait: func() {}, took: func(map[string]av) {}, items: make(map[string]map[string]av)}
}

func (f *fake) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	f.wait()
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	f.mu.Lock()
	status, out := f.execute(r.Header.Get("X-Amz-Target"), &in)
	text, err := json.Marshal(out)
	date := f.now().UTC().Format(http.TimeFormat)
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f.wait()
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	h := http.Header{"Date": {date}, "Content-Type": {"application/x-amz-json-1.0"}}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, nil
}

type request struct {
	Key, Item                             map[string]av
	UpdateExpression, ConditionExpression string
	ExpressionAttributeValues             map[string]av
	ReturnValues                          string
	RequestItems                          map[string]struct{ Keys []map[string]av }
}

func (f *fake) execute(target string, in *request) (int, any) {
	_, op, _ := strings.Cut(target, ".")
	if n := max(len(in.UpdateExpression), len(in.ConditionExpression)); n > mostExpression {
		return 400, map[string]any{
			"__type":  "com.amazonaws.dynamodb.v20120810#ValidationException",
			"message": fmt.Sprintf("Expression size has exceeded the maximum allowed size; expression size: %d", n),
		}
	}
	switch op {
	case "GetItem":
		return 200, map[string]any{"Item": f.items[in.Key["k"]["S"].(string)]}
	case "BatchGetItem":
		responses := make(map[string][]map[string]av)
		for table, keys := range in.RequestItems {
			for _, k := range keys.Keys {
				if it := f.items[k["k"]["S"].(string)]; it != nil {
					responses[table] = append(responses[table], it)
				}
			}
		}
		return 200, map[string]any{"Responses": responses}
	case "PutItem":
		in.Key = map[string]av{"k": in.Item["k"]}
		return f.write(in, func(map[string]av) (map[string]av, []string) { return in.Item, nil })
	case "UpdateItem":
		return f.write(in, in.update)
	}
	return 400, map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#UnknownOperationException"}
}

func (f *fake) write(in *request, change func(old map[string]av) (map[string]av, []string)) (int, any) {
	key := in.Key["k"]["S"].(string)
	old := f.items[key]
	if in.ConditionExpression != "" && !in.holds(in.ConditionExpression, old) {
		return 400, map[string]any{
			"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "The conditional request failed", "Item": old,
		}
	}
	next, names := change(old)
	next["k"] = in.Key["k"]
	f.items[key] = next
	f.took(next)
	out := next
	if in.ReturnValues == "UPDATED_NEW" {
		out = make(map[string]av)
		for _, n := range names {
			if v, ok := next[n]; ok {
				out[n] = v
			}
		}
	}
	return 200, map[string]any{"Attributes": out}
}

func (in *request) update(old map[string]av) (next map[string]av, names []string) {
	next = maps.Clone(old)
	if next == nil {
		next = make(map[string]av)
	}
	for _, section := range sections(in.UpdateExpression) {
		verb, rest, _ := strings.Cut(section, " ")
		for clause := range strings.SplitSeq(rest, ", ") {
			f := strings.Fields(clause)
			name := strings.TrimPrefix(f[0], "#")
			names = append(names, name)
			switch verb {
			case "SET":
				next[name] = in.ExpressionAttributeValues[f[2]]
			case "ADD":
				next[name] = av{"N": new(big.Int).Add(number(next[name]), number(in.ExpressionAttributeValues[f[1]])).String()}
			case "REMOVE":
				delete(next, name)
			}
		}
	}
	return next, names
}

func sections(expression string) (all []string) {
	from := 0
	for i := range expression {
		for _, verb := range [...]string{" SET ", " ADD ", " REMOVE "} {
			if strings.HasPrefix(expression[i:], verb) {
				all = append(all, expression[from:i])
				from = i + 1
			}
		}
	}
	return append(all, expression[from:])
}

func number(v av) *big.Int {
	n := new(big.Int)
	if text, ok := v["N"].(string); ok {
		if _, ok := n.SetString(text, 10); !ok {
			panic("number " + text)
		}
	}
	return n
}

// holds evaluates a condition.
func (in *request) holds(condition string, it map[string]av) bool {
	for either := range strings.SplitSeq(condition, " OR ") {
		all := true
		words := strings.Split(either, " AND ")
		for i := 0; i < len(words); i++ {
			term := words[i]
			if strings.Contains(term, " BETWEEN ") {
				i++
				term += " " + words[i]
			}
			all = all && in.term(term, it)
		}
		if all {
			return true
		}
	}
	return false
}

func (in *request) term(term string, it map[string]av) bool {
	if rest, ok := strings.CutPrefix(term, "NOT "); ok {
		return !in.term(rest, it)
	}
	if rest, ok := strings.CutPrefix(term, "attribute_not_exists("); ok {
		_, there := it[strings.TrimSuffix(rest, ")")]
		return !there
	}
	if rest, ok := strings.CutPrefix(term, "begins_with("); ok {
		name, value, _ := strings.Cut(strings.TrimSuffix(rest, ")"), ", ")
		have, ok := it[name]["S"].(string)
		return ok && strings.HasPrefix(have, in.ExpressionAttributeValues[value]["S"].(string))
	}
	f := strings.Fields(term)
	have, ok := it[f[0]]
	if !ok {
		return false
	}
	want := in.ExpressionAttributeValues[f[2]]
	if text, ok := want["S"]; ok {
		return f[1] == "=" && have["S"] == text
	}
	c := number(have).Cmp(number(want))
	switch f[1] {
	case "=":
		return c == 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">=":
		return c >= 0
	case "BETWEEN":
		most := number(in.ExpressionAttributeValues[f[3]])
		if number(want).Cmp(most) > 0 {
			panic("BETWEEN needs the lower bound first: " + term)
		}
		return c >= 0 && number(have).Cmp(most) <= 0
	}
	panic(fmt.Sprintf("condition %q", term))
}

// The test checks a Store on the fake against the contract, to the microsecond.
func TestContractAsDocumented(t *testing.T) {
	t.Parallel()
	hand := storetest.NewHand()
	f := newFake(hand.Now)
	var stores [3]*Store
	for i := range stores {
		stores[i] = New(clientOf(f), "weir", Options{exact: hand.Now})
	}
	n := 0
	var mu sync.Mutex
	open := func(testing.TB) fleet.Store {
		mu.Lock()
		defer mu.Unlock()
		n++
		return stores[n%3]
	}
	storetest.TestStore(t, open, storetest.Driven(hand.Advance), storetest.Hammer(time.Duration(campaign.Of(raced.Of(150, 40), 350))*time.Millisecond))
	for _, s := range stores {
		t.Logf("%+v", s.Stats())
	}
}
