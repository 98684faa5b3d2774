package decide

import "testing"

// Calls of a language model queue by user, else by caller, else by API key, unless the call sets the key itself.
// Other keys are unchanged.
func TestWhoWaitsInTurnForAModel(t *testing.T) {
	for _, tt := range []struct {
		scopes Scopes
		keys   map[string]string
		caller string
		want   string
	}{
		{Scopes{Model: true}, map[string]string{"user": "ann", "credential": "k"}, "batch", "ann"},
		{Scopes{Model: true}, map[string]string{"credential": "k"}, "batch", "batch"},
		{Scopes{Model: true}, map[string]string{"credential": "k"}, "", "k"},
		{Scopes{Model: true}, map[string]string{"user": "ann", "caller": "bob"}, "", "bob"},
		{Scopes{Model: true}, nil, "batch", "batch"},
		{Scopes{Model: true}, nil, "", ""},
		{Scopes{}, map[string]string{"user": "ann"}, "batch", ""},
	} {
		before := len(tt.keys)
		got := tt.scopes.flow(tt.keys, tt.caller)
		if got["caller"] != tt.want || got["user"] != tt.keys["user"] || len(tt.keys) != before {
			t.Errorf("%v by %q: got %v, want the caller %q", tt.keys, tt.caller, got, tt.want)
		}
	}
}
