// Command devtoken issues a token for every request, to try messages on one machine. Never run it elsewhere.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const at = "127.0.0.1:8099"

func main() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	public, err := key.PublicKey.Bytes() // 0x04, x, y
	if err != nil {
		log.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	http.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{
			"kty": "EC", "crv": "P-256", "kid": "dev", "alg": "ES256", "use": "sig", "x": part(public[1:33]), "y": part(public[33:]),
		}}})
	})
	http.HandleFunc("GET /token", func(w http.ResponseWriter, r *http.Request) {
		t := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
			"iss": "http://" + at, "aud": "messages", "sub": r.FormValue("sub"), "scope": r.FormValue("scope"), "exp": time.Now().Add(time.Hour).Unix(),
		})
		t.Header["kid"] = "dev"
		signed, err := t.SignedString(key)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, signed)
	})
	server := &http.Server{Addr: at, ReadHeaderTimeout: time.Second}
	log.Fatal(server.ListenAndServe())
}
