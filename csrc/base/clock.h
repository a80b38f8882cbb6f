#ifndef GK_CLOCK_H
#define GK_CLOCK_H

double gk_seconds(void); /* a clock that only goes forward */

#endif
