// SPDX-License-Identifier: BSD-3-Clause
// gem5's pseudo-instructions.
#include "textflag.h"

TEXT ·workBegin(SB), NOSPLIT, $0
	MOVQ $0, DI
	MOVQ $0, SI
	BYTE $0x0f; BYTE $0x04; BYTE $0x5a; BYTE $0x00
	RET

TEXT ·operationDone(SB), NOSPLIT, $0
	MOVQ $1, DI
	MOVQ $0, SI
	BYTE $0x0f; BYTE $0x04; BYTE $0x5b; BYTE $0x00
	RET
