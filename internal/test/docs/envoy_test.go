//go:build unix

package docs

import (
	"slices"
	"strings"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Envoy's requests with the page's configuration get weir's decisions by the page's rules.
func TestEnvoyIsAnsweredAsItsPageShows(t *testing.T) {
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s Sample) bool {
		return s.File == "docs/how-to/use-envoy.md" && strings.HasPrefix(s.Text, "# envoy.yaml")
	})
	if i < 0 {
		t.Fatal("the page has no configuration of Envoy")
	}
	file, err := filterOf(all[i].Text)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := recipe{page: "use-envoy.md", dir: dir, replace: map[string]string{"127.0.0.1:8083": "127.0.0.1:0", "rules.yaml": dir + "/rules.yaml"}}
	w := r.try(t)
	conn, err := grpc.NewClient(w.Serve.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	service := rls.NewRateLimitServiceClient(conn)
	for _, c := range []struct {
		path   string
		status []rls.RateLimitResponse_Code
		limits []uint32 // of each descriptor; 0 means none
	}{
		{"/reports/day", []rls.RateLimitResponse_Code{rls.RateLimitResponse_OK, rls.RateLimitResponse_OK, rls.RateLimitResponse_OVER_LIMIT}, []uint32{1000, 2}},
		{"/carts", []rls.RateLimitResponse_Code{rls.RateLimitResponse_OK, rls.RateLimitResponse_OK, rls.RateLimitResponse_OK}, []uint32{1000, 0}},
	} {
		for n, want := range c.status {
			got, err := service.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{
				Domain: file.Filters[0].Config.Domain, Descriptors: file.descriptors(map[string]string{"x-tenant": "acme", ":path": c.path}),
			}, grpc.WaitForReady(true))
			if err != nil {
				t.Fatal(err)
			}
			if got.OverallCode != want {
				t.Errorf("request %d for %s: %v, want %v", n+1, c.path, got.OverallCode, want)
			}
			for i, s := range got.Statuses {
				if s.GetCurrentLimit().GetRequestsPerUnit() != c.limits[i] {
					t.Errorf("%s: descriptor %d has the limit %v, want %d", c.path, i, s.CurrentLimit, c.limits[i])
				}
			}
		}
	}
}
