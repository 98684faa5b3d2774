package serve

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
)

// CloudWatch receives the tier, source and usage of models' answers.
func TestCloudWatchHearsWhatModelsUse(t *testing.T) {
	var lines bytes.Buffer
	metrics, err := weircw.New(weircw.Config{Lines: &lines})
	if err != nil {
		t.Fatal(err)
	}
	var m models
	m.begin(new(Server), weir.Events{}, prometheus.NewRegistry())
	t.Cleanup(m.close)
	m.cloud = metrics
	e := m.events()
	e.Answered(gateway.Answered{Upstream: "chat", Tier: "other", Degraded: true, Cache: "miss"})
	e.Used(gateway.Used{Upstream: "chat", Usage: llm.Usage{Input: 301, Output: 22}, Cost: price.Dollar / 2})
	if err := metrics.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{`"ModelInputTokens":301`, `"ModelOutputTokens":22`, `"ModelCost":0.5`, `"Tier":"other"`, `"ModelFallbacks":1`, `"ModelCacheMisses":1`} {
		if !strings.Contains(lines.String(), says) {
			t.Errorf("published %s, want %s", lines.String(), says)
		}
	}
}
