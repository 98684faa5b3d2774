package classify

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
)

// isTLS reports whether TLS itself failed. Most errors of crypto/tls have no distinguishable type.
func isTLS(err error) bool {
	if inHandshake(err) {
		return true
	}
	s := err.Error()
	return strings.Contains(s, "tls: ") || strings.Contains(s, "x509: ")
}

// inHandshake reports whether TLS failed before the upstream could have read a request. In TLS 1.3 a client whose certificate is
// refused has already sent its request, but the server refuses before it reads the request.
func inHandshake(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return strings.HasPrefix(e.Msg, "first record") || strings.HasPrefix(e.Msg, "unsupported SSLv2")
	}
	return isCertificate(err) || isHandshakeAlert(err) ||
		strings.HasSuffix(err.Error(), "net/http: TLS handshake timeout")
}

func isCertificate(err error) bool {
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return authority || host || invalid
}

// handshakeAlerts (RFC 8446, 6.2) are only sent during the handshake.
var handshakeAlerts = [...]tls.AlertError{
	40, 42, 43, 44, 45, 46, 48, 49, 70, 71, 86, 109, 110, 112, 113, 115, 116, 120,
}

// isHandshakeAlert compares texts: the alert in a connection's error has an unexported type with the same text as the exported
// one.
func isHandshakeAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Err == nil || op.Op != "remote error" && op.Op != "local error" {
		return false
	}
	text := op.Err.Error()
	for _, a := range handshakeAlerts {
		if a.Error() == text {
			return true
		}
	}
	return false
}
