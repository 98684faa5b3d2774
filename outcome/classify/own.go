package classify

import (
	"slices"
	"strings"
)

// ownPaths are the paths of codes whose meaning depends on other fields, and of these fields.
var ownPaths = [...]string{"error.error_code", "error.error_msg", "retCode", "retMsg", "errors.code", "success", "requestId", "code", "msg"}

// ownFields are the first values at ownPaths.
type ownFields [len(ownPaths)]string

func (o *ownFields) read(path []byte, v string) {
	if i := slices.Index(ownPaths[:], string(path)); i >= 0 && o[i] == "" {
		o[i] = v
	}
}

// code returns the code of a throttle of VK, Bybit, Marketo or Feishu, after the name of the API, and "" for other responses.
func (o *ownFields) code() string {
	code := ""
	switch {
	case o[0] != "" && o[1] != "":
		code = "vk:" + o[0]
	case o[2] != "" && o[3] != "":
		code = "retCode:" + o[2]
	case o[4] != "" && o[5] == "false" && o[6] != "":
		code = "marketo:" + o[4]
	case o[7] != "" && o[8] != "":
		code = "feishu:" + o[7]
	}
	if !decides(code) {
		return ""
	}
	return code
}

// krakenCode returns a code of Kraken without spaces: EAPI:Rate_limit_exceeded. "EService:Throttled: 1795176004" has a time after
// its code.
func krakenCode(v string) string {
	kind, text, ok := strings.Cut(v, ":")
	if !ok || kind != "EAPI" && kind != "EOrder" && kind != "EService" {
		return v
	}
	text, _, _ = strings.Cut(text, ":")
	return kind + ":" + strings.ReplaceAll(text, " ", "_")
}
