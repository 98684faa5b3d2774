package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const chat = `
callers: true
upstreams:
  chat:
    url: https://h
    preset: anthropic
    llm:
      cache: true
      cascade:
        tiers:
          - {model: claude-3-haiku}
          - {upstream: other, confidence: 60%}
          - {cached: true}
          - {answers: answers.yaml}
          - {message: "Sorry."}
  other:
    url: https://other
    llm: {family: anthropic, callers: off}
`

// The maintenance texts are checked even if the switch is off, and require a tier with a message.
func TestMaintenanceIsRead(t *testing.T) {
	of := func(maintenance, tier string) string {
		text := strings.Replace(chat, "{upstream: other,", "{name: elsewhere, upstream: other,", 1)
		return strings.Replace(strings.Replace(text, "cascade:\n", "cascade:\n        maintenance: "+maintenance+"\n", 1), `{message: "Sorry."}`, tier, 1)
	}
	f := parse(t, of(`{on: true, message: "At work.", reduced: [uploads, search]}`, `{message: ["a", "b"], contact: "c"}`))
	c := f.LLM["chat"].Cascade
	if want := (Maintenance{On: true, Message: "At work.", Reduced: []string{"uploads", "search"}}); !reflect.DeepEqual(c.Maintenance, want) {
		t.Errorf("maintenance is %+v, want %+v", c.Maintenance, want)
	}
	if last := c.Tiers[4]; !slices.Equal(last.Messages, []string{"a", "b"}) || last.Contact != "c" {
		t.Errorf("the tier is %+v", last)
	}
	for _, bad := range []string{
		of("{message: x}", "{model: other}"), of("{message: ''}", "{message: x}"), of("off", "{model: other, contact: x}"), of("{on: maybe}", "{message: x}"),
	} {
		if _, err := Parse("weir.yaml", []byte(bad), setting(nil)); err == nil {
			t.Errorf("no complaint about %s", bad)
		}
	}
}

// An upstream that is not a language model charges its requests to callers if it has callers: true. The file must
// then set the limits of callers.
func TestUpstreamsCountTheirCallers(t *testing.T) {
	f := parse(t, "callers: true\nupstreams: {a: {url: 'https://h', callers: true}, b: {url: 'https://h'}}")
	if !f.Counted["a"] || f.Counted["b"] {
		t.Errorf("counted are %v, want a", f.Counted)
	}
	for _, bad := range []string{
		"upstreams: {a: {url: 'https://h', callers: true}}", "callers: true\nupstreams: {a: {url: 'https://h', callers: true, llm: {family: openai}}}",
	} {
		if _, err := Parse("weir.yaml", []byte(bad), setting(nil)); err == nil {
			t.Errorf("no complaint about %s", bad)
		}
	}
}

func TestACascadeIsRead(t *testing.T) {
	f := parse(t, strings.Replace(chat, "{upstream: other,", "{name: elsewhere, upstream: other,", 1))
	c := f.LLM["chat"].Cascade
	if c == nil || len(c.Tiers) != 5 {
		t.Fatalf("%+v", c)
	}
	for i, want := range []Tier{
		{Name: "secondary", Model: "claude-3-haiku", Confidence: 0.7}, {Name: "elsewhere", Upstream: "other", Confidence: 0.6},
		{Name: "cached", Cached: true, Confidence: 0.5}, {Name: "static", Answers: "answers.yaml", Confidence: 0.3},
		{Name: "message", Messages: []string{"Sorry."}, Confidence: 0.1},
	} {
		if !reflect.DeepEqual(c.Tiers[i], want) {
			t.Errorf("tier %d is %+v, want %+v", i, c.Tiers[i], want)
		}
	}
	if l := f.LLM["chat"]; l.Family != "anthropic" || l.Cache == nil || !l.Callers {
		t.Errorf("%+v", l)
	}
	if f.LLM["other"].Callers {
		t.Error("other is charged to its callers")
	}
}

func TestWhoSaysARateIsNotToldOne(t *testing.T) {
	f := parse(t, "upstreams: {a: {url: \"https://h\", preset: openai, limits: {rpm: 20/s}}}")
	for _, l := range f.Upstreams[0].Policy.Limits {
		if want := map[string]string{"rpm": "", "tpm": "tokens"}[l.Name]; l.Advertised != want {
			t.Errorf("%s is told %q, want %q", l.Name, l.Advertised, want)
		}
	}
}

func TestCallersHaveDefaults(t *testing.T) {
	f := parse(t, chat[:strings.Index(chat, "upstreams")]+"upstreams: {a: {url: \"https://h\", llm: {}}}")
	var rules []string
	for _, l := range f.Callers.Policy.Limits {
		rules = append(rules, l.Name+": "+l.String())
	}
	want := "global: 2000/s burst 4000, user: 5/s burst 10, user-premium: 15/s burst 30, user-day: 5000 a day (UTC), user-day-premium: 15000 a day (UTC)"
	if got := strings.Join(rules, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if l := f.Callers.Policy.Limits; l[1].If.NotIn[0] != "premium" || l[2].If.In[0] != "premium" || l[1].If.Scope != "plan" {
		t.Errorf("%+v", l)
	}
	if f.Callers.Keys["user"].Name != "X-User" || f.Callers.Policy.MaxWait >= 0 {
		t.Errorf("%+v", f.Callers)
	}
}

func TestCallersMayBeChanged(t *testing.T) {
	f := parse(t, `
callers:
  keys: {user: "claim:sub"}
  claims: {secret_env: JWT}
  limits: {user: {rate: 1/s}, user-day: off, week: {amount: 9, every: week, scope: tenant}}
  max_wait: 2s
upstreams: {a: {url: "https://h", llm: {}}}
`)
	c := f.Callers
	if c.Keys["user"].Kind != Claim || c.Keys["tenant"].Name != "X-Tenant" || c.Claims.SecretEnv != "JWT" || c.Policy.MaxWait != 2*time.Second {
		t.Errorf("%+v", c)
	}
	var names []string
	for _, l := range c.Policy.Limits {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); got != "global user user-premium week" {
		t.Errorf("limits: %s", got)
	}
}

func TestMistakesInACascade(t *testing.T) {
	for _, c := range []struct{ change, to, want string }{
		{"{upstream: other, confidence: 60%}", "{name: z, upstream: othr}", `unknown upstream "othr"; did you mean other?`},
		{"{upstream: other, confidence: 60%}", "{name: x, upstream: chat}", "would call the same upstream and model again"},
		{"{upstream: other, confidence: 60%}", "{upstream: other, message: x}", "want exactly one of"},
		{"{upstream: other, confidence: 60%}", "{upstream: other}", "duplicate tier secondary"},
		{"{message: \"Sorry.\"}", "{mesage: x}", "did you mean message?"},
		{"{message: \"Sorry.\"}", "{name: primary, message: x}", "duplicate tier primary"},
		{"{message: \"Sorry.\"}", "{message: x, threshold: 50%}", "is for static answers only"},
		{"llm: {family: anthropic, callers: off}", "breaker: off", "is not a language model"},
		{"cache: true", "cache: off", "there is no cache for tier cached"},
		{"callers: true", "callers: {keys: {user: \"claim:sub\"}}", "no key to verify the token"},
		{"callers: true", "callers: {claims: {issuer: x}}", "needs one of secret_env and key"},
		{"llm: {family: anthropic, callers: off}", "llm: {family: openai}", "upstream other has the wire format openai, but this upstream has anthropic"},
		{"      cache: true", "      cache: true\n      key_env: sk-ant-secret", "is not the name of an environment variable"},
		{"callers: true", "callers: {limits: {x: {rate: 5/s, scope: team}}}", "unknown scope"},
		{"  other:", "  callers: {url: \"https://h\"}\n  other:", "this name is reserved"},
		{"preset: anthropic\n", "preset: anthropic\n    fair: team\n", "unknown scope"},
		{"llm: {family: anthropic, callers: off}", "llm: {family: anthropic}\n    aws: {service: bedrock}", "add aws: {region: us-east-1} to other"},
	} {
		text := strings.Replace(chat, "{upstream: other,", "{name: elsewhere, upstream: other,", 1)
		if strings.HasPrefix(c.change, "{upstream") {
			text = chat
		}
		d := newDecoder("weir.yaml")
		d.parse([]byte(strings.Replace(text, c.change, c.to, 1)), nil)
		if got := d.Errs.Error(); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.to, got, c.want)
		}
	}
}

func TestSimilarQuestionsAreSwitchedOn(t *testing.T) {
	for text, want := range map[string]float64{"cache: true": 0, "cache: {similar: off}": 0, "cache: {similar: true}": 0.95, "cache: {similar: 80%}": 0.8, "cache: {similar: 1}": 1} {
		f, err := Parse("weir.yaml", []byte("upstreams: {chat: {url: http://a.example, llm: {family: openai, "+text+"}}}"), nil)
		if err != nil || f.LLM["chat"].Cache.Similar != want {
			t.Errorf("%s: %v, %v; want %v", text, f, err, want)
		}
	}
	for _, text := range []string{"79%", "101%", "often"} {
		if _, err := Parse("weir.yaml", []byte("upstreams: {chat: {url: http://a.example, llm: {family: openai, cache: {similar: "+text+"}}}}"), nil); err == nil || !strings.Contains(err.Error(), "similar") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// For the models of a cascade, a preset's rate is provisional if the provider may report the limit: another tier
// answers throttled calls. A rate in the file applies.
func TestAdvertisedLimitsOfCascadesAreProvisional(t *testing.T) {
	f, err := Parse("weir.yaml", []byte(`upstreams:
  chat:
    preset: anthropic
    limits: {own: 100/min, otpm: {rate: 9000/min}}
    llm: {cascade: {tiers: [{upstream: other}, {message: We are sorry.}]}}
  other: {preset: openai, llm: {family: anthropic}}
  alone: {preset: anthropic}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range f.Upstreams {
		for _, l := range u.Policy.Limits {
			if want := u.Name != "alone" && l.Advertised != "" && l.Amount != 9000; l.Provisional != want {
				t.Errorf("limit %s of %s: provisional is %v, want %v", l.Name, u.Name, l.Provisional, want)
			}
		}
	}
}
