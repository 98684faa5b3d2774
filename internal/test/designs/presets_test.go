package designs

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// preset returns the policy of an upstream that has only its preset.
func preset(t *testing.T, name string) weir.Policy {
	t.Helper()
	f, err := config.Parse("weir.yaml", []byte("upstreams: {a: {url: http://provider.example, preset: "+name+"}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f.Upstreams[0].Policy
}

// The preset of DRS equals its design, and the policy of Go programs without a file.
func TestThePresetOfDRSIsTheDesigns(t *testing.T) {
	got, want := preset(t, "drs"), awsx.Preset("drs")
	if got.Limits[0].Rate != want.Limits[0].Rate || got.MaxWait != want.MaxWait || got.Breaker != want.Breaker || got.Retry.Attempts != want.Retry.Attempts {
		t.Errorf("%+v\nin Go: %+v", got, want)
	}
	if r := got.Limits[0].Rate; r.Amount != 10 || r.Burst != 20 || got.MaxWait != 30*time.Second || got.Retry.Attempts != 6 || !got.Breaker.Off {
		t.Errorf("%+v", got)
	}
}
