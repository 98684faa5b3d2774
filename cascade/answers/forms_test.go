package answers

import (
	"fmt"
	"testing"
)

// A question matches with other forms of its words and without accents. Brand names match within Japanese, Chinese and
// Korean.
func TestWordsAreFoundInOtherForms(t *testing.T) {
	for _, c := range []struct{ language, written, asked string }{
		{"en", "How do I return a damaged item?", "returning damaged items"},
		{"en", "What are the shop's opening hours?", "opening hours of your shops"},
		{"de", "Wie storniere ich eine Bestellung?", "Bestellungen stornieren"},
		{"de", "Welche Öffnungszeiten haben Sie?", "oeffnungszeiten"},
		{"de", "Wie lange dauert die Lieferung?", "Dauer der Lieferungen"},
		{"fr", "Comment suivre ma commande ?", "suivi des commandes"},
		{"fr", "Quels sont les délais de livraison ?", "delai livraisons"},
		{"fr", "Où est l’adresse de facturation ?", "adresses de facturation"},
		{"es", "¿Cómo devuelvo un artículo?", "devolver articulos"},
		{"es", "¿Cuánto tarda el envío?", "tardan los envios"},
		{"it", "Come annullo un ordine?", "annullare gli ordini"},
		{"it", "Dov'è l'indirizzo di fatturazione?", "indirizzi fatturazione"},
		{"pt", "Como devolvo uma encomenda?", "devolver encomendas"},
		{"pt", "Qual é o prazo da entrega?", "prazos de entregas"},
		{"nl", "Hoe annuleer ik een bestelling?", "bestellingen annuleren"},
		{"sv", "Hur avbokar jag en beställning?", "avboka beställningar"},
		{"da", "Hvordan annullerer jeg en bestilling?", "annullere bestillinger"},
		{"no", "Hvordan avbestiller jeg en ordre?", "avbestille ordrer"},
		{"fi", "Miten peruutan tilauksen?", "tilausten peruutus"},
		{"tr", "Siparişimi nasıl iptal ederim?", "sipariş iptali"},
		{"ru", "Как отменить заказ?", "отмена заказов"},
		{"ja", "PayPayで支払えますか", "支払いにＰａｙＰａｙは使えますか"},
		{"ja", "ﾎﾟｲﾝﾄの有効期限はいつまでですか", "ポイントの有効期限を教えて"},
		{"zh", "可以用PayPay付款吗？", "我想用paypay付款"},
		{"ko", "PayPay로 결제할 수 있나요?", "PayPay 결제"},
	} {
		b := &Book{}
		file := fmt.Sprintf("answers:\n  - {id: it, questions: {%s: [%q]}, answer: {%[1]s: Yes.}}\n  - {id: other, questions: {en: [\"Where is my parcel?\"]}, answer: {en: No.}}\n", c.language, c.written)
		if err := b.Parse("answers.yaml", []byte(file)); err != nil {
			t.Fatal(err)
		}
		b.Threshold = 1e-9
		m, ok := b.Find(c.asked, c.language)
		t.Logf("%s %.2f %s", c.language, m.Confidence, c.asked)
		if !ok || m.ID != "it" || m.Confidence < 0.3 {
			t.Errorf("%q: got %q with %.2f", c.asked, m.ID, m.Confidence)
		}
	}
}
