/* build_id.h - the version people and logs see. */

#ifndef INF_BUILD_ID_H
#define INF_BUILD_ID_H

#define INF_VERSION "0.1.0"
#define INF_BUILD   "nginx-inference " INF_VERSION

#endif /* INF_BUILD_ID_H */
