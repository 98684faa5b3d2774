package designs

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A limit that is named after an operation has its spelling: metrics show both.
func TestLimitsSpellOperationsAsTheAPI(t *testing.T) {
	limits := make(map[string][]limit.Limit)
	for _, name := range config.Presets() {
		limits["preset "+name] = preset(t, name).Limits
	}
	for _, service := range []string{"s3", "drs", "sts", "dynamodb", "lambda", "monitoring", "ec2"} {
		limits["awsx "+service] = awsx.Preset(service).Limits
	}
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) }
	seen := 0
	for _, of := range slices.Sorted(maps.Keys(limits)) {
		for _, l := range limits[of] {
			for _, o := range l.Operations {
				if seen++; plain(o) == plain(l.Name) && o != l.Name {
					t.Errorf("%s: limit %s counts %s, which it spells otherwise", of, l.Name, o)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d operations of limits, want those of all presets", seen)
	}
}
