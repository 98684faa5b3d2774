package connlimit

const notSentLowat = 0x201 // TCP_NOTSENT_LOWAT
