package price

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/llm"
)

func TestModelsFindTheirRow(t *testing.T) {
	table := BuiltIn()
	for model, want := range map[string]string{
		"claude-3-haiku-20240307":                              "claude-3-haiku",
		"claude-3-haiku@20240307":                              "claude-3-haiku",
		"CLAUDE-3-Haiku":                                       "claude-3-haiku",
		"anthropic.claude-3-haiku-20240307-v1:0":               "claude-3-haiku",
		"us.anthropic.claude-3-haiku-20240307-v1:0":            "claude-3-haiku",
		"eu.anthropic.claude-3-sonnet-20240229-v1:0":           "claude-3-sonnet",
		"apac.anthropic.claude-3-sonnet-20240229-v1:0:200k":    "claude-3-sonnet",
		"global.anthropic.claude-sonnet-4-5-20250929-v1:0":     "claude-sonnet-4-5",
		"us.anthropic.claude-opus-4-7-v1":                      "claude-opus-4-7",
		"anthropic/claude-3-5-haiku-latest":                    "claude-3-5-haiku",
		"claude-sonnet-4@20250514":                             "claude-sonnet-4",
		"publishers/anthropic/models/claude-opus-4-1@20250805": "claude-opus-4-1",
		"models/gemini-2.5-flash":                              "gemini-2.5-flash",
		"gpt-4o-2024-08-06":                                    "gpt-4o",
		"gpt-4o-mini-2024-07-18":                               "gpt-4o-mini",
		"gpt-4.1-2025-04-14":                                   "gpt-4.1",
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-3-opus-20240229-v1:0": "claude-3-opus",
	} {
		row, ok := table.Find(model)
		if !ok || row.Model != want {
			t.Errorf("%s finds %q, want %q", model, row.Model, want)
		}
	}
}

func TestNoModelFindsTheRowOfAnother(t *testing.T) {
	table := BuiltIn()
	for _, model := range []string{
		"", "/", "-", ":", "gpt-4", "gpt-4o-audio-preview", "gpt-4o-min", "gpt-4o-minis", "gpt-4o-mini-tts", "gpt-4o-2024", "gpt-4o-20240806x",
		"ft:gpt-4o-2024-08-06:shop::abc", "claude", "claude-3", "claude-3-haik", "claude-sonnet-4-9", "claude-sonnet-4-99999999",
		"gemini-2.5", "gemini-2.5-flash-image", "gpt-4.1-mini", "xx.anthropic.claude-3-haiku-20240307-v1:0", "-v1:0", "us.", "us.anthropic.",
	} {
		if row, ok := table.Find(model); ok {
			t.Errorf("%q finds %s", model, row.Model)
		}
	}
}

func TestPatternsAreForWhatHasNoRow(t *testing.T) {
	table := parse(t, `models:
  gpt-4o*: {input: 1, output: 1}
  gpt-4o-mini*: {input: 2, output: 2}
  gpt-4o: {input: 3, output: 3}
  my-*: {input: 5, output: 5}
  "*": {input: 4, output: 4}
`)
	for model, want := range map[string]string{
		"gpt-4o": "gpt-4o", "gpt-4o-2024-08-06": "gpt-4o", "gpt-4o-audio": "gpt-4o*",
		"gpt-4o-mini-2024-07-18": "gpt-4o-mini*", "llama": "*", "us.anthropic.my-model-v1:0": "my-*",
	} {
		if row, _ := table.Find(model); row.Model != want {
			t.Errorf("%s finds %q, want %q", model, row.Model, want)
		}
		if row, ok := table.Find(model); (ok && row.Assumed()) != (want == "*") {
			t.Errorf("%s: the price is assumed: %v", model, row.Assumed())
		}
	}
}

func TestCostsOfKnownCalls(t *testing.T) {
	said := func(in, out, read, write int64) llm.Usage {
		return llm.Usage{Input: in, Output: out, CacheRead: read, CacheWrite: write, Said: true}
	}
	for _, c := range []struct {
		model string
		used  llm.Usage
		want  string
	}{
		{"claude-3-haiku-20240307", said(5000, 0, 0, 0), "0.001250 USD"},
		{"claude-3-sonnet-20240229", said(1_000_000, 1_000_000, 0, 0), "18.000000 USD"},
		{"claude-3-haiku-20240307", said(1, 1, 0, 0), "0.0000015 USD"},
		{"claude-3-haiku-20240307", said(1000, 100, 600, 300), "0.000258 USD"},
		{"gpt-4o-mini", said(1, 0, 1, 0), "0.000000075 USD"},
		{"gemini-2.5-pro", said(200_000, 0, 0, 0), "0.250000 USD"},
		{"gemini-2.5-pro", said(200_001, 0, 0, 0), "0.5000025 USD"},
		{"claude-3-haiku", said(-5, -5, -5, -5), "0.000000 USD"},
		{"claude-3-haiku", said(100, 0, 5000, 5000), "0.000003 USD"}, // at most the entire input is cached
	} {
		if got, ok := BuiltIn().Cost(c.model, c.used); !ok || got.String() != c.want {
			t.Errorf("%s, %+v: %v, want %s", c.model, c.used, got, c.want)
		}
	}
	if _, ok := BuiltIn().Cost("claude-3-haiku", llm.Usage{Input: 5}); ok {
		t.Error("an answer that did not say what it took has a cost")
	}
}

// Costs are exact. The test compares them with fractions. Split calls cost as much as one call.
func TestCostsAreExact(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		micros := r.Int64N(dearest * 1_000_000)
		table := parse(t, fmt.Sprintf("models: {m: {input: %d.%06d, output: 0}}", micros/1_000_000, micros%1_000_000))
		a, b := r.Int64N(1_000_000), r.Int64N(1_000_000)
		cost := func(n int64) Amount {
			c, _ := table.Cost("m", llm.Usage{Input: n, Said: true})
			return c
		}
		want := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(micros), big.NewInt(a)), big.NewInt(1e12))
		if a := cost(a); new(big.Rat).SetFrac64(int64(a), int64(Dollar)).Cmp(want) != 0 {
			t.Fatalf("seed %d: %v, want %s", seed, a, want.FloatString(12))
		}
		if cost(a).Add(cost(b)) != cost(a+b) {
			t.Fatalf("seed %d: %d and %d tokens at %d do not cost what they cost together", seed, a, b, micros)
		}
	}
}

func TestAmountsStopAtTheirBounds(t *testing.T) {
	huge := parse(t, "models: {m: {input: 10000, output: 10000}}")
	got, _ := huge.Cost("m", llm.Usage{Input: math.MaxInt64, Output: math.MaxInt64, Said: true})
	if got != math.MaxInt64 || got.Add(got) != math.MaxInt64 {
		t.Errorf("all tokens there are cost %v", got)
	}
	for a, want := range map[Amount]string{
		0: "0.000000 USD", 1: "0.000000000001 USD", -Dollar / 2: "-0.500000 USD", math.MinInt64: "-9223372.036854775808 USD",
	} {
		if got := a.String(); got != want {
			t.Errorf("%d reads %s, want %s", int64(a), got, want)
		}
	}
}

func TestAnAmountReadsAsItIs(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		a := Amount(r.Uint64() >> r.IntN(64))
		if r.IntN(2) == 0 { // with trailing zeros
			a = a / 1e9 * 1e9
		}
		n := strings.TrimPrefix(strconv.FormatInt(int64(a), 10), "-")
		n = strings.Repeat("0", max(0, 13-len(n))) + n
		whole, part := n[:len(n)-12], n[len(n)-12:]
		want := whole + "." + part[:6] + strings.TrimRight(part[6:], "0") + " USD"
		if a < 0 {
			want = "-" + want
		}
		if got := a.String(); got != want {
			t.Fatalf("seed %d: %d reads %s, want %s", seed, int64(a), got, want)
		}
	}
}

func TestEveryMistakeIsComplainedOf(t *testing.T) {
	_, err := Parse("my.yaml", []byte(`currency: EUR
modells: 5
models:
  a: {inputt: 1, output: 2}
  b: {input: -1, output: 2}
  c: {input: 10001, output: 2}
  d: {input: cheap, output: 2}
  e: {input: 1}
  f: 7
  g: {input: 0.0000001, output: 2}
  g: {input: 1, output: 2}
  G: {input: 1, output: 2}
  h*i: {input: 1, output: 2}
  j: {input: 1, output: 2, long: {input: 2, output: 3}}
  k: {input: 1, output: 2, long: {above: many, input: 2, output: 3}}
  l: {input: [1], output: 1e3}
`))
	want := `my.yaml:1:11: currency: EUR is not supported; want USD: amounts in several currencies cannot be added up
my.yaml:2:1: modells: unknown field "modells"; did you mean models?
my.yaml:4:7: models.a.inputt: unknown field "inputt"; did you mean input?
my.yaml:5:14: models.b.input: -1 is negative; write 0 if it costs nothing
my.yaml:6:14: models.c.input: 10001 is more than 10000 dollars per million tokens; write dollars per million tokens, such as 0.25
my.yaml:7:14: models.d.input: cheap is not a price; write dollars per million tokens, such as 0.25
my.yaml:8:6: models.e.output: is missing
my.yaml:9:6: models.f: "7": want fields, indented below it
my.yaml:10:14: models.g.input: 0.0000001 has more than six decimals
my.yaml:11:3: models.g: is given twice, first in line 10
my.yaml:12:3: models.G: is given twice, first in line 10, in different case
my.yaml:13:3: models.h*i: has a star within the name; a star is allowed only at the end
my.yaml:14:34: models.j.long.above: is missing; write the number of tokens above which a prompt is long
my.yaml:15:42: models.k.long.above: many is not a number of tokens; write a number of tokens, such as 200000
my.yaml:16:14: models.l.input: a list is not a price; write dollars per million tokens, such as 0.25
my.yaml:16:27: models.l.output: 1e3 is not a price; write dollars per million tokens, such as 0.25`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if c, ok := errors.AsType[doc.Complaint](err); !ok || c.Line != 1 {
		t.Errorf("the first complaint is %+v", c)
	}
}

func TestFilesWithoutPricesAreComplainedOf(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "there are no prices",
		"# nothing":                           "there are no prices",
		"currency: USD":                       "there are no prices",
		"[1, 2]":                              "a list: want fields",
		"models: {a: {input: 1":               "broken YAML",
		"a: &x {b: *x}":                       `unknown field "a"`,
		"models: &m {a: *m}":                  "refers to what it is part of",
		"models: {a: {<<: {input: 1}}}":       "models.a.output: is missing",
		"models: {}\n---\nmodels: {}":         "a second document begins",
		"models:\n\ta: {input: 1}":            "broken YAML",
		strings.Repeat(" ", bounds.Bytes+1):   "is larger than",
		"models: {'': {input: 1, output: 1}}": "a model has no name",
	} {
		if _, err := Parse("t", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func TestJSONIsReadToo(t *testing.T) {
	table := parse(t, `{"currency": "USD", "models": {"m": {"input": 1.5, "output": 2}}}`)
	if row, ok := table.Find("m"); !ok || row.Input != 1_500_000 || row.CacheRead != row.Input {
		t.Errorf("got %+v", row)
	}
}

func TestOwnTableGoesBefore(t *testing.T) {
	own := parse(t, "models: {claude-3-haiku: {input: 9, output: 9}, 'gpt*': {input: 1, output: 1}}")
	both := own.Over(BuiltIn())
	if row, _ := both.Find("claude-3-haiku-20240307"); row.Input != 9_000_000 {
		t.Errorf("the user's price of Haiku is not taken: %+v", row)
	}
	if row, _ := both.Find("gpt-4o"); row.Model != "gpt-4o" {
		t.Errorf("a pattern goes before a row: %+v", row)
	}
	if row, _ := BuiltIn().Find("claude-3-haiku"); row.Input != 250_000 {
		t.Errorf("the table that comes with weir has changed: %+v", row)
	}
	if _, ok := (Table{}).Over(Table{}).Find("m"); ok {
		t.Error("a table of nothing knows a model")
	}
}

func parse(t *testing.T, text string) Table {
	t.Helper()
	table, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestLedgerAddsUp(t *testing.T) {
	l := NewLedger(100)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				l.Add("shop", fmt.Sprint("user", i%3), "m", 5, llm.Usage{Input: 2, Output: 1, CacheRead: -7})
			}
		})
	}
	wg.Wait()
	var sum Totals
	for _, totals := range l.All() {
		sum.Cost += totals.Cost
		sum.Calls += totals.Calls
		sum.Input += totals.Input
		sum.CacheRead += totals.CacheRead
	}
	if want := (Totals{Cost: 40_000, Calls: 8000, Input: 16_000}); sum.Cost != want.Cost || sum.Calls != want.Calls || sum.Input != want.Input || sum.CacheRead != 0 {
		t.Errorf("got %+v, want %+v", sum, want)
	}
}

// The number of accounts stays bounded for any number of names, and the sum stays complete.
func TestLedgerIsBounded(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		limit := 10 + r.IntN(40)
		l := NewLedger(limit)
		for range 200 {
			l.Add(fmt.Sprint(r.IntN(4)), fmt.Sprint(r.IntN(100)), fmt.Sprint(r.IntN(3)), 1, llm.Usage{})
		}
		accounts, sum := 0, Amount(0)
		for _, totals := range l.All() {
			accounts++
			sum += totals.Cost
		}
		if accounts > limit || sum != 200 {
			t.Fatalf("seed %d: %d accounts of %d, a sum of %d and not 200", seed, accounts, limit, sum)
		}
	}
}

func TestLedgerKeepsTenantsApartWhenUsersAreTooMany(t *testing.T) {
	l := NewLedger(20)
	for i := range 100 {
		l.Add("shop", fmt.Sprint(i), "m", 1, llm.Usage{})
	}
	for a, totals := range l.All() {
		if a == (Account{"shop", others, "m"}) && totals.Calls == 82 {
			return
		}
	}
	t.Error("the users that are too many are not added up for their tenant")
}

func TestKnownAccountsAllocateNothing(t *testing.T) {
	l := NewLedger(10)
	l.Add("shop", "ann", "m", 1, llm.Usage{})
	if n := testing.AllocsPerRun(100, func() { l.Add("shop", "ann", "m", 1, llm.Usage{Input: 1}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(string(builtIn))
	f.Add("models: {a: {input: 1, output: 2, long: {above: 5}}}")
	f.Add("models: {a: {inputt: 1}}\n---\nx: *y")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := Parse("f", []byte(text))
		if err != nil {
			if all, ok := err.(Errors); !ok || len(all) == 0 {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		for row := range table.All() {
			for _, a := range []Amount{row.Input, row.Output, row.CacheRead, row.CacheWrite, row.Long.Input, row.Long.Output} {
				if a < 0 || a > dearest*1_000_000 {
					t.Fatalf("%+v", row)
				}
			}
		}
	})
}

func FuzzFind(f *testing.F) {
	f.Add("us.anthropic.claude-3-haiku-20240307-v1:0")
	f.Add("gpt-4o@default")
	f.Fuzz(func(t *testing.T, model string) {
		if row, ok := BuiltIn().Find(model); ok && !strings.Contains(strings.ToLower(model), row.Model) {
			t.Fatalf("%q finds %s", model, row.Model)
		}
	})
}

func BenchmarkCostAndLedger(b *testing.B) {
	table, l := BuiltIn(), NewLedger(1000)
	b.ReportAllocs()
	for b.Loop() {
		u := llm.Usage{Input: 1000, Output: 200, Said: true}
		cost, _ := table.Cost("us.anthropic.claude-3-haiku-20240307-v1:0", u)
		l.Add("shop", "ann", "claude-3-haiku", cost, u)
	}
}

func TestWritingTheCacheForAnHourCostsTwiceTheInput(t *testing.T) {
	table, err := Parse("p.yaml", []byte("models:\n  a: {input: 3, output: 15, cache_read: 0.30, cache_write: 3.75}\n  b: {input: 3, output: 15, cache_write: 3.75, cache_write_1h: 5}\n  c: {input: 3, output: 15}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model       string
		write, hour int64
		want        string
	}{
		{"a", 1000, 1000, "0.006084"}, {"a", 1000, 0, "0.003834"}, {"a", 1000, 400, "0.004734"}, {"a", 1000, 5000, "0.006084"},
		{"b", 1000, 1000, "0.005084"}, {"c", 1000, 1000, "0.003084"},
	} {
		got, _ := table.Cost(c.model, llm.Usage{Said: true, Input: 3 + c.write, Output: 5, CacheWrite: c.write, WriteHour: c.hour})
		if got.String() != c.want && got.String() != c.want+" USD" {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
