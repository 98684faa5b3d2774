package awsdialect_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/sidecar/awsdialect"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// ways are a plain proxy, weir that forwards, and weir that signs.
func ways(b *testing.B) map[string]string {
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(far.Close)
	u, _ := url.Parse(far.URL)
	d, err := awsdialect.New(awsdialect.Options{Options: resign.Options{Credentials: credentials.NewStaticCredentialsProvider(ours, secret, "")}})
	if err != nil {
		b.Fatal(err)
	}
	px, err := proxy.New([]proxy.Upstream{
		{Name: "plain", URL: u}, {Name: "signed", URL: u, Dialect: d, Policy: weir.Policy{Undeclared: true}},
	}, weir.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := httptest.NewServer(px)
	b.Cleanup(s.Close)
	bare := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }})
	b.Cleanup(bare.Close)
	return map[string]string{"bare": bare.URL + "/", "plain": s.URL + "/plain/", "signed": s.URL + "/signed/"}
}

func BenchmarkPut(b *testing.B) {
	urls := ways(b)
	for _, size := range []int{1 << 10, 8 << 20} {
		body := make([]byte, size)
		sum := sha256.Sum256(body)
		hash := hex.EncodeToString(sum[:])
		for _, name := range []string{"bare", "plain", "signed"} {
			b.Run(name+"/"+map[int]string{1 << 10: "1KiB", 8 << 20: "8MiB"}[size], func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					r, _ := http.NewRequest(http.MethodPut, urls[name]+"bucket/a/key", bytes.NewReader(body))
					r.Header.Set("X-Amz-Content-Sha256", hash)
					r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AK/20260101/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=0")
					resp, err := http.DefaultClient.Do(r)
					if err != nil || resp.StatusCode != 200 {
						b.Fatal(resp, err)
					}
					_ = resp.Body.Close()
				}
			})
		}
	}
}
